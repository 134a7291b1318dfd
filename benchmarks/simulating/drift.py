"""Warm-ups, drift and regime changes: what is called steady or changed, and what really was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import cast

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.queues import Station, arriving, closed
from benchmarks.simulating.truths import Floats, Law, Random, Run
from reports.caveats.change import LatencyChange
from reports.caveats.drift import changed
from reports.summary.slices import Slice, sliced
from swarm.output.run_fold import FollowedRun
from swarm.study.steady import Steadiness

RUNS, WARM_UPS = 400, 200
"""Simulated for a line: the chance error of 5 % is 1.1 and 1.5 points."""
SEED, WARM_UP_SEED = 12, 13
SECONDS = 20
CAP_S, QUICK_CAP_S = 30, 12
"""The longest warm-up of a full study, and of a quick one."""
UNKNOWN_S = 1
"""Of a warm-up so far: its first second is not whole."""
FALSE, FOUND = 5.0, 95.0
BATCHES_S = (0.3, 0.7, 1.5)
"""What one executed batch takes: several a second, and fewer than one."""
Truth = Callable[[Random, int], Run]
TWO_MODES = Law((20.0, 60.0), (0.7, 0.3), request=0.1, second=0.02, kept=0.8, per_s=10)
FEW, HEAVY = Law(request=0.5, per_s=20), Law(request=1.0, second=0.02, kept=0.8, per_s=20)


def law(sd: float, kept: float = 0.8) -> Truth:
    """Seconds that vary by `sd` and are alike by `kept`; a request's own noise is small beside it."""
    drawn = Law(request=0.05, second=sd, kept=kept)
    return lambda random, seconds: drawn.draw(seconds, random)


def batched(batch_s: float) -> Truth:
    """8 users at a server that executes what waits, in a time that varies by 3 %."""
    station = Station(batch_s, most_batch=8, spread=0.03)
    return lambda random, seconds: Run(closed(8, station, seconds + 5, random).run().seconds[5 : seconds + 5])


def loaded(share: float) -> Truth:
    """Arrivals that use a share of a server of 20 ms, whose queue is alike for as long as it is loaded."""
    station = Station(0.02, spread=0.1)
    return lambda random, seconds: Run(
        arriving(share * station.capacity_per_s, station, seconds + 20, random)
        .run()
        .seconds[20 : seconds + 20]
    )


STATIONARY: dict[str, Truth] = {
    "seconds alike by 0.8, 2 %": law(0.02),
    "seconds alike by 0.8, 5 %": law(0.05),
    "two modes, 20 and 60 ms": lambda random, seconds: TWO_MODES.draw(seconds, random),
    "heavy tail (σ 1), 20 a second": lambda random, seconds: HEAVY.draw(seconds, random),
    **{f"batches of {batch_s:g} s": batched(batch_s) for batch_s in BATCHES_S},
    "arrivals at 70 % of the capacity": loaded(0.7),
}


@dataclass(frozen=True)
class Warming:
    """A start-up that is slower by a share which decays, and what is promised of it, in percent."""

    name: str
    truth: Truth
    slower: float = 0.0
    settling_s: float = 1.0
    most_doubted: float | None = None
    least_doubted: float | None = None
    most_left: float | None = None

    def factors(self, at_s: Floats) -> Floats:
        """Of seconds."""
        found: Floats = 1 + self.slower * np.exp(-at_s / self.settling_s)
        return found


WARMING = (
    Warming("seconds alike by 0.8, 2 %", law(0.02), most_doubted=5),
    Warming("seconds alike by 0.8, 5 %", law(0.05), most_doubted=5),
    *(Warming(f"batches of {batch_s:g} s", batched(batch_s), most_doubted=5) for batch_s in BATCHES_S),
    Warming("20 a second (σ 0.5)", lambda random, seconds: FEW.draw(seconds, random), most_doubted=5),
    Warming(
        "heavy tail (σ 1), 20 a second", lambda random, seconds: HEAVY.draw(seconds, random), most_doubted=5
    ),
    Warming("+100 %, settling in 3 s", law(0.03), 1, 3, most_doubted=10, most_left=1),
    Warming("+100 %, in 10 s", law(0.02), 1, 10),
    Warming("+30 %, settling in 15 s", law(0.03), 0.3, 15, most_left=15),
    Warming("+100 %, in 20 s", law(0.02), 1, 20, least_doubted=95),
    Warming("+200 %, in 60 s, noise 1 %", law(0.01, 0.0), 2, 60, least_doubted=95),
    Warming("+200 %, in 60 s, noise 2 %", law(0.02, 0.0), 2, 60, least_doubted=50),
    Warming("+100 %, in 60 s, noise 1 %", law(0.01, 0.0), 1, 60, least_doubted=70),
    Warming("+100 %, in 60 s, alike by 0.8, 2 %", law(0.02), 1, 60),
)
"""The last is one that no rule of some seconds sees: it moves by 0.8 % a second, as its noise does."""


def promises(bounds: Bounds) -> None:
    """Prints false and missed calls in percent, and what warm-ups leave."""
    random = np.random.default_rng(SEED)
    for seconds in (SECONDS, 2 * SECONDS):
        for name, truth in STATIONARY.items():
            called = share([found(truth(random, seconds)) for _ in range(RUNS)])
            bounds.at_most(f"{seconds} s, {name}: called", called, FALSE, "%")
    bounds.beside("seconds alike by 0.9, 5 %: called", called_of(law(0.05, 0.9), steady, random), "%")
    missed(bounds, random)
    warm_ups(bounds)


def missed(bounds: Bounds, random: Random) -> None:
    """A slope of 1 % a second, a step of 20 % in the last third, and one from 20 to 80 ms."""
    for kept in (0.0, 0.8):
        for sd in (0.02, 0.03, 0.05):
            quiet = sd == 0.02
            figures = (
                ("1 % a second", lambda at: 1 + 0.01 * at),
                ("a step of 20 %", lambda at: np.where(at >= 2 / 3 * SECONDS, 1.2, 1)),
            )
            for what, factors in figures:
                name = f"{what}, noise {100 * sd:g} %, alike by {kept:g}: found"
                bounds.at_least(
                    name, called_of(law(sd, kept), factors, random), FOUND if quiet else None, "%"
                )
    runs = [
        slowed(law(0.05)(random, 2 * SECONDS), lambda at: np.where(at >= SECONDS, 4, 1)) for _ in range(RUNS)
    ]
    hits = [one is not None and one.is_step and abs(one.from_s - SECONDS) <= 1 for one in map(found, runs)]
    bounds.at_least("20 to 80 ms after 20 of 40 s: found within 1 s", 100 * float(np.mean(hits)), FOUND, "%")
    since = [slowed(law(0.03, 0.0)(random, SECONDS + 8), lambda at: 1 + 0.01 * at) for _ in range(RUNS)]
    alone = share([found(Run(run.seconds[8:])) for run in since])
    bounds.beside("1 % a second since 8 s before, noise 3 %: found alone", alone, "%")
    bounds.beside("  with the warm-up", share([found(run, 8) for run in since]), "%")


def warm_ups(bounds: Bounds) -> None:
    """How long each takes, how many end at the cap, how much too slow those called steady are."""
    random = np.random.default_rng(WARM_UP_SEED)
    for one in WARMING:
        runs = [slowed(one.truth(random, CAP_S), one.factors) for _ in range(WARM_UPS)]
        ends = [ended(run, CAP_S) for run in runs]
        steady_s = np.array([float(at) for at, is_steady in ends if is_steady])
        doubted = 100 * (1 - len(steady_s) / WARM_UPS)
        bounds.beside(f"warm-up, {one.name}: median", float(np.median([at for at, _ in ends])), "s")
        if one.least_doubted is None:
            bounds.at_most("  not steady", doubted, one.most_doubted, "%")
        else:
            bounds.at_least("  not steady", doubted, one.least_doubted, "%")
        if one.slower and len(steady_s):
            left = 100 * float(np.mean(one.factors(steady_s) - 1))
            bounds.at_most("  too slow where it is steady", left, one.most_left, "%")
        quick = [ended(run, QUICK_CAP_S) for run in runs]
        doubted = 100 * float(np.mean([not is_steady for _, is_steady in quick]))
        bounds.beside(f"  {QUICK_CAP_S} s at most: median", float(np.median([at for at, _ in quick])), "s")
        bounds.at_most("  not steady", doubted, None if one.slower else one.most_doubted, "%")


def found(run: Run, warm_s: int = 0) -> LatencyChange | None:
    """What a run's caveat would say, whose first seconds were its warm-up."""
    slices = slices_of(run)
    return changed(
        [one for one in slices if one.at_s < warm_s], [one for one in slices if one.at_s >= warm_s]
    )


def ended(run: Run, cap_s: int) -> tuple[int, bool]:
    """After how many seconds a warm-up of at most `cap_s` ends, and whether it was steady then."""
    steadiness, whole = Steadiness(cap_s), run.results
    for seconds in count(1):
        known = whole[UNKNOWN_S:seconds]
        told = SimpleNamespace(complete=known, latest=known, compute_ns=())
        if steadiness.over(cast(FollowedRun, told), seconds):
            break
    return seconds, not steadiness.doubt


def slices_of(run: Run) -> list[Slice]:
    """Its seconds, joined."""
    return sliced([(at, [second.histogram("latency")]) for at, second in enumerate(run.results)])


def slowed(run: Run, factors: Callable[[Floats], Floats]) -> Run:
    """The same, each second slower by its factor."""
    return run.slowed(factors(np.arange(float(len(run.seconds)))))


def steady(at_s: Floats) -> Floats:
    """No change at all."""
    return np.ones_like(at_s)


def called_of(truth: Truth, factors: Callable[[Floats], Floats], random: Random) -> float:
    """How many percent of its runs have a caveat."""
    return share([found(slowed(truth(random, SECONDS), factors)) for _ in range(RUNS)])


def share(changes: Sequence[LatencyChange | None]) -> float:
    """Of them those that are changes, in percent."""
    return 100 * sum(one is not None for one in changes) / len(changes)
