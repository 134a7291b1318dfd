"""How often a threshold stops a measure phase that keeps its bound, and when one that breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import NS_PER_MS, Floats, Law, Random, Run, ar1, results_of
from reports.fold.windows import Results
from reports.gates.thresholds import Threshold, parse_gates
from reports.summary.blocks import BlockSeries
from swarm.output.early_stop import CERTAIN, LOOK_S, chance_of, is_certain, look_at, unlucky

PHASES, BAD_ONES = 1_000, 20
PER_S, PERCENT = 200, 95
BOUND_MS, MAY_FAIL = 100.0, 0.01
ALONE, MANY_RUNS = 1, 100
SOON_S = 10
"""Within so many seconds of a phase what is plainly bad is to be stopped."""
REQUIRE = "[[threshold]]\nrequire = '{}'\nabort_after_s = 0\n"


@dataclass(frozen=True)
class Phase:
    """A measure phase under way, one of so many `runs`: its bound is exceeded `worse` times, or just kept.

    It is kept in its first `good_s` seconds in any case.
    `law` is of latencies; where `fails`, its `second` and `kept` are of the odds of failures instead.
    """

    law: Law
    worse: float = 1.0
    seconds: int = 300
    runs: int = ALONE
    fails: bool = False
    good_s: int = 0

    @property
    def looks(self) -> range:
        """The seconds after which it is looked at."""
        return range(LOOK_S, self.seconds + 1, LOOK_S)


def law(second: float, kept: float = 0.7) -> Law:
    """Seconds that vary so much and are so much alike."""
    return Law(second=second, kept=kept, per_s=PER_S)


INDEPENDENT, ALIKE, ROUGH = law(0.0), law(0.05), law(0.15, kept=0.8)
BURSTS, STORMS = law(0.5), law(1.0, kept=0.8)
KEPT = {
    "seconds independent": Phase(INDEPENDENT),
    "seconds of 5 %, alike 0.7": Phase(ALIKE),
    "seconds of 15 %, alike 0.8": Phase(ROUGH),
    "  the same, 600 s": Phase(ROUGH, seconds=600),
    "failures in storms, alike 0.8": Phase(STORMS, fails=True),
    "  in storms, 600 s": Phase(STORMS, seconds=600, fails=True),
}
"""Of phases that keep their bound."""


def promises(bounds: Bounds) -> None:
    """False stops of phases that just keep their bounds, then when those are stopped that do not."""
    for name, phase in KEPT.items():
        stopped = [stopped_after(phase, seed) < inf for seed in range(PHASES)]
        bounds.at_most(f"{name}: false stops", 100 * sum(stopped) / PHASES, 100 * CERTAIN, "%")
    for worse in (1.2, 1.5, 2.0, 5.0):
        bad = Phase(ALIKE, worse, runs=MANY_RUNS)
        when(bounds, f"p{PERCENT} {worse:g} times its bound: after", bad, worse == 5)
    turned = Phase(ALIKE, 5, runs=MANY_RUNS, good_s=30)
    when(bounds, "  the same, the first 30 s good: after", turned, plainly=False)
    for worse, of in ((2.0, BURSTS), (10.0, BURSTS), (100.0, INDEPENDENT)):
        bad = Phase(of, worse, runs=MANY_RUNS, fails=True)
        when(bounds, f"failures {worse:g} times their bound: after", bad, worse == 100)


def when(bounds: Bounds, title: str, phase: Phase, plainly: bool) -> None:
    """When half of them are stopped; all of those soon that are `plainly` bad."""
    stopped = [stopped_after(phase, seed) for seed in range(BAD_ONES)]
    if plainly:
        bounds.at_most(f"{title}, at most", max(stopped), SOON_S, "s")
    elif median(stopped) < inf:
        bounds.beside(title, median(stopped), "s")
    else:
        share = sum(after_s < inf for after_s in stopped) / BAD_ONES
        bounds.beside(f"{title} {phase.seconds} s, stopped", 100 * share, "%")


def stopped_after(phase: Phase, seed: int) -> float:
    """The seconds after which one of those phases is stopped; infinity where it never is."""
    random = np.random.default_rng(seed)
    worse = np.where(np.arange(phase.seconds) < phase.good_s, 1.0, phase.worse)
    return _failing(phase, worse, random) if phase.fails else _slow(phase, worse, random)


def _slow(phase: Phase, worse: Floats, random: Random) -> float:
    threshold = _threshold(f"latency_p{PERCENT}_ms <= {BOUND_MS}")
    at_bound = BOUND_MS * NS_PER_MS / phase.law.percentile_ns(PERCENT)
    run = phase.law.draw(phase.seconds, random).slowed(at_bound * worse)
    # Blocks take long to make, and hardly ever is a phase so far beyond its bound.
    beyond = [after_s for after_s in phase.looks if _is_beyond(phase, threshold, run, after_s)]
    return _first(phase, threshold, [results_of(second) for second in run.seconds] if beyond else [], beyond)


def _is_beyond(phase: Phase, threshold: Threshold, run: Run, after_s: int) -> bool:
    """Whether so many requests are above what is exceeded only in bad luck that it may be certain."""
    bound_ms = unlucky(threshold, after_s, _chance(phase, threshold, after_s) / 2).require.bound
    late = np.concatenate(run.seconds[:after_s]) > bound_ms * NS_PER_MS
    return bool(late.mean() > 1 - PERCENT / 100)


def _failing(phase: Phase, worse: Floats, random: Random) -> float:
    odds = np.exp(ar1(phase.seconds, phase.law.second, phase.law.kept, random) - phase.law.second**2 / 2)
    failures = random.binomial(PER_S, np.minimum(1, MAY_FAIL * worse * odds)).tolist()
    blocks = [Results(ok=PER_S - one, failure_kinds=Counter(timeout=one)) for one in failures]
    return _first(phase, _threshold(f"failure_ratio <= {MAY_FAIL}"), blocks, phase.looks)


def _chance(phase: Phase, threshold: Threshold, after_s: int) -> float:
    return chance_of(look_at(threshold, after_s), phase.runs)


def _first(phase: Phase, threshold: Threshold, blocks: Sequence[Results], looks: Sequence[int]) -> float:
    for after_s in looks:
        seconds = BlockSeries(blocks[:after_s], np.zeros(after_s, np.int64))
        if is_certain(threshold, seconds, 1, _chance(phase, threshold, after_s)):
            return after_s
    return inf


def _threshold(require: str) -> Threshold:
    (found,) = parse_gates(REQUIRE.format(require), "simulated").thresholds
    return found
