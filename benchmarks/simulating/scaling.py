"""Saturation: peaks where nothing falls, the planted law and its parameters, and where the knee lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from scipy.special import pdtr

from benchmarks.bounds import Bounds
from benchmarks.simulating.queues import Station, closed
from benchmarks.simulating.truths import Floats, Random
from reports.stats.knee import Level, enough, fall, knee_of
from reports.stats.scaling_laws import BestLaw, best_law

USERS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])
REPEATS, STUDIES, MANY, SEED = (1, 3), 200, 1_000, 31
"""Peaks are looked for in many studies: that needs no fit."""
NOISE, LOUD, P95_NOISE = 0.03, 0.10, 0.05
"""Standard deviations of logarithms: of a run's rate, of that at the last level of a loud study, of a p95."""
CAPACITY, THINK = 480.0, 5.0
"""Of the single server: images a second, and think time in service times."""
BATCHING = Station(0.02, 0.002, most_batch=32, spread=0.1)
WARM_S, SECONDS = 2.0, 12.0
FALSE_PEAK, RIGHT, COVERED, NEAR = 5.0, 90.0, 93.0, 95.0
"""Percent: peaks on curves that do not fall, laws named as planted, and intervals that hold what was planted.
Last, knees at most one level away from that of the curve without noise."""


@dataclass(frozen=True)
class Truth:
    """Rates and latencies by level, the name and the parameters of the law, and whether it falls at last.

    A truth that is none of the laws has no parameters.
    """

    rates: Floats
    latencies_ms: Floats
    law: str
    parameters: tuple[float, ...] = ()
    falls: bool = False

    @property
    def exact(self) -> list[Level]:
        """Its levels without noise."""
        rows = zip(USERS.tolist(), self.rates.tolist(), self.latencies_ms.tolist(), strict=True)
        return [Level(users, (rate,), p95_ms) for users, rate, p95_ms in rows]

    def study(self, repeats: int, random: Random, last: float = NOISE) -> list[Level]:
        """Its levels as so many repeats show them; `last` is the noise at the most users."""
        noise = np.full((len(USERS), 1), NOISE)
        noise[-1] = last
        rates = self.rates[:, None] * np.exp(noise * random.standard_normal((len(USERS), repeats)))
        p95s_ms = self.latencies_ms * np.exp(P95_NOISE / repeats**0.5 * random.standard_normal(len(USERS)))
        rows = zip(USERS.tolist(), rates.tolist(), p95s_ms.tolist(), strict=True)
        return [Level(users, tuple(some), p95_ms) for users, some, p95_ms in rows]


def promises(bounds: Bounds) -> None:
    """Each truth with one run a level and with three."""
    for repeats in REPEATS:
        for name, truth in truths().items():
            peaks(bounds, f"{name}, {repeats} a level", truth, repeats)
            knees(bounds, f"{name}, {repeats} a level", truth, repeats)
    planted = {name: truth for name, truth in truths().items() if truth.parameters}
    laws(bounds, planted)


def peaks(bounds: Bounds, title: str, truth: Truth, repeats: int) -> None:
    """False ones, or how many of the true ones are seen; without repeats none can be."""
    if truth.falls:
        bounds.at_least(f"{title}: peak seen", seen(truth, repeats), RIGHT if repeats > 1 else None, "%")
        return
    bounds.at_most(f"{title}: false peaks", seen(truth, repeats), FALSE_PEAK, "%")
    if repeats > 1:
        bounds.at_most(f"{title}, the last loud: false peaks", seen(truth, repeats, LOUD), FALSE_PEAK, "%")


def seen(truth: Truth, repeats: int, last: float = NOISE) -> float:
    """In how many percent of studies a peak is claimed."""
    random = np.random.default_rng(SEED)
    return percent(fall(truth.study(repeats, random, last)) is not None for _ in range(MANY))


def knees(bounds: Bounds, title: str, truth: Truth, repeats: int) -> None:
    """The knee and what is enough, beside those of the curve without noise.

    What is enough with one run a level is by chance, as the report says.
    """
    random = np.random.default_rng(SEED)
    studies = [truth.study(repeats, random) for _ in range(MANY)]
    for name, found, least in (
        ("knee", knee_of, NEAR),
        ("95 %", enough, NEAR if repeats > 1 else None),
    ):
        users = found(truth.exact).users
        times = [found(levels).users / users for levels in studies]
        near = percent(1 / 2 <= one <= 2 for one in times)
        bounds.at_least(f"{title}: {name} within a level", near, least, "%")


def laws(bounds: Bounds, planted: Mapping[str, Truth]) -> None:
    """Which law is named, and how often its parameters' intervals hold what was planted."""
    held = list[bool]()
    for repeats, (name, truth) in product(REPEATS, planted.items()):
        random = np.random.default_rng(SEED)
        found = [law_of(truth.study(repeats, random)) for _ in range(STUDIES)]
        right = [law for law in found if law.name == truth.law]
        bounds.at_least(
            f"{name}, {repeats} a level: law as planted", 100 * len(right) / len(found), RIGHT, "%"
        )
        held += [one for law in right for one in holds(law, truth)]
    bounds.at_least("intervals of parameters hold the truth", percent(held), COVERED, "%")


def law_of(levels: Sequence[Level]) -> BestLaw:
    """By the suite's own function; eight levels always carry one here."""
    law = best_law((level.users, rate) for level in levels for rate in level.rates)
    if not isinstance(law, BestLaw):
        raise ValueError(law.reason)
    return law


def holds(law: BestLaw, truth: Truth) -> Iterator[bool]:
    """For each parameter that has an interval."""
    for estimate, planted in zip(law.estimates, truth.parameters, strict=True):
        if estimate.low is not None and estimate.high is not None:
            yield estimate.low <= planted <= estimate.high


def percent(of: Iterable[bool]) -> float:
    """How many are true."""
    return 100 * float(np.mean(list(of)))


@cache
def truths() -> dict[str, Truth]:
    """Rates by formulas that are not the suite's own, or by simulation; latencies by Little's law."""
    one = 1000 / CAPACITY
    # The states of the queue are Poisson probabilities, cut off at so many users.
    queue = CAPACITY * pdtr(USERS - 1, THINK) / pdtr(USERS, THINK)
    serial = 0.05 * (USERS - 1)
    return {
        "constant": waiting(np.full(8, CAPACITY), "constant", (CAPACITY,)),
        "hard limit": waiting(np.minimum(20 * USERS, 120), "hard limit", (20, 120, 6)),
        "one queue": waiting(queue, "one queue", (CAPACITY, one, THINK * one), THINK * one),
        "Amdahl": waiting(20 * USERS / (1 + serial), "Amdahl", (20, 0.05, 400)),
        "USL, peak at 22": waiting(
            20 * USERS / (1 + serial + 0.002 * USERS * (USERS - 1)), "USL", (20, 0.05, 0.002), falls=True
        ),
        "batches of 32": batching(),
    }


def waiting(
    rates: Floats, law: str, parameters: tuple[float, ...], think_ms: float = 0.0, falls: bool = False
) -> Truth:
    """Users who wait for each answer and think for a while."""
    return Truth(rates, 1000 * USERS / rates - think_ms, law, parameters, falls)


def batching() -> Truth:
    """A server that takes all that waits, up to 32, simulated; it is none of the laws."""
    rates, p95s_ms = list[float](), list[float]()
    for users in USERS.astype(int).tolist():
        run = closed(users, BATCHING, SECONDS, np.random.default_rng(SEED)).started(WARM_S, SECONDS)
        rates.append(len(run.starts_s) / (SECONDS - WARM_S))
        p95s_ms.append(1000 * float(np.percentile(run.latencies_s, 95)))
    return Truth(np.array(rates), np.array(p95s_ms), "none")
