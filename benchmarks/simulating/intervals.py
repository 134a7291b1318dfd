"""Intervals of means, ratios, pairs and shares: how often the true value lies in those of 95 %."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import BATCHED, LAWS, NOISY, SWITCHING, Floats, Law, Random, Run, buckets_of
from reports.histogram.buckets import percentiles_ns
from reports.stats.log_ratio import CONFIDENCE, GeometricMean, LogRatio, geometric_mean, log_ratio
from reports.stats.paired import paired_ratio
from reports.stats.shares import share_of

STUDIES, OF_RUNS, OF_SHARES = 4_000, 1_000, 1_000
"""Simulated for a line of the table: the chance error of a coverage of 95 % is 0.3, 0.7 and 0.7 points."""
OFF = 2.0
"""Percentage points by which a coverage may be off."""
LEAST, MOST = 100 * CONFIDENCE - OFF, 100 * CONFIDENCE + OFF
SPREAD, QUIETER, OF_TURNS = 0.04, 0.01, 0.05
"""Standard deviations of logarithms: of runs, of a quieter cell's runs, and of what a turn's runs share."""
FEW, REPEATS = 3, (3, 5, 10)
FARTHER, OUTLIERS = 5.0, 0.05
SLOWER = 1.1
SECONDS = 20
VALUES_SEED, RUNS_SEED, SHARES_SEED = 1, 2, 3
Draw = Callable[[Random, tuple[int, int]], Floats]


def normal(random: Random, shape: tuple[int, int]) -> Floats:
    """What Student's t assumes."""
    return random.standard_normal(shape)


def heavy(random: Random, shape: tuple[int, int]) -> Floats:
    """Student's t of three degrees of freedom, with a standard deviation of 1."""
    found: Floats = random.standard_t(3, shape) / np.sqrt(3)
    return found


def outlying(random: Random, shape: tuple[int, int]) -> Floats:
    """One of twenty is five times as far off."""
    return normal(random, shape) * np.where(random.random(shape) < OUTLIERS, FARTHER, 1)


def skewed(random: Random, shape: tuple[int, int]) -> Floats:
    """Exponential, around 0: what disturbs a run makes it slower and never faster."""
    return random.standard_exponential(shape) - 1


OTHERS: dict[str, Draw] = {"heavy tails": heavy, "outliers": outlying, "skewed": skewed}


def promises(bounds: Bounds) -> None:
    """Coverage of each interval, in percent."""
    random = np.random.default_rng(VALUES_SEED)
    ratios(bounds, random)
    pairs(bounds, random)
    means(bounds, random)
    of_runs(bounds, np.random.default_rng(RUNS_SEED))
    shares(bounds, np.random.default_rng(SHARES_SEED))


def ratios(bounds: Bounds, random: Random) -> None:
    """Of two cells by Welch. What a turn's runs share is in the interval, which is then too wide."""

    def coverage(repeats: int, draw: Draw = normal, other: float = SPREAD, turn: float = 0.0) -> float:
        shape = (STUDIES, repeats)
        turns = turn * normal(random, shape)
        sides = np.exp(SPREAD * draw(random, shape) + turns), np.exp(other * draw(random, shape) + turns)
        return covered([log_ratio(*both) for both in zip(*sides, strict=True)], 1.0)

    for repeats in REPEATS:
        bounds.between(f"ratio, {repeats} repeats", coverage(repeats), LEAST, MOST, "%")
        found = coverage(repeats, other=QUIETER)
        bounds.between(f"ratio, {repeats} repeats, one side quieter", found, LEAST, MOST, "%")
    for name, draw in OTHERS.items():
        bounds.at_least(f"ratio, {FEW} repeats, {name}", coverage(FEW, draw), LEAST, "%")
    bounds.at_least(f"ratio, {FEW} repeats, turns differ", coverage(FEW, turn=OF_TURNS), LEAST, "%")


def pairs(bounds: Bounds, random: Random) -> None:
    """Of two cells whose repeats are pairs, by Student. What a turn's runs share cancels out."""

    def coverage(count: int, draw: Draw = normal) -> float:
        shape = (STUDIES, count)
        turns = OF_TURNS * normal(random, shape)
        sides = [np.exp(SPREAD * draw(random, shape) + turns) for _ in range(2)]
        pairs = [[dict(enumerate(side)) for side in both] for both in zip(*sides, strict=True)]
        return covered([paired_ratio(*both) for both in pairs], 1.0)

    for count in REPEATS:
        bounds.between(f"{count} pairs", coverage(count), LEAST, MOST, "%")
    for name, draw in OTHERS.items():
        bounds.at_least(f"{FEW} pairs, {name}", coverage(FEW, draw), LEAST, "%")


def means(bounds: Bounds, random: Random) -> None:
    """Of one cell's repeats, by Student on logarithms. It is known not to hold where they are skewed."""

    def coverage(repeats: int, draw: Draw = normal) -> float:
        values = np.exp(SPREAD * draw(random, (STUDIES, repeats)))
        return covered([geometric_mean(one) for one in values], 1.0)

    for repeats in REPEATS:
        bounds.between(f"mean, {repeats} repeats", coverage(repeats), LEAST, MOST, "%")
    for name in ("heavy tails", "outliers"):
        bounds.at_least(f"mean, {FEW} repeats, {name}", coverage(FEW, OTHERS[name]), LEAST, "%")
    bounds.beside(f"mean, {FEW} repeats, skewed", coverage(FEW, skewed), "%")


def of_runs(bounds: Bounds, random: Random) -> None:
    """Ratios of percentiles of simulated runs, of which one side is slower, by Welch."""
    for name, law in (("seconds alike", NOISY), ("batches of 32", BATCHED)):
        slower = replace(law, medians_ms=tuple(SLOWER * median for median in law.medians_ms))
        drawn = [[percentiles(one, FEW, random) for one in (slower, law)] for _ in range(OF_RUNS)]
        for at, percent in enumerate((50, 95)):
            found = [log_ratio(*(side[:, at].tolist() for side in both)) for both in drawn]
            title = f"ratio of p{percent}, {FEW} runs, {name}"
            bounds.between(title, covered(found, SLOWER), LEAST, MOST, "%")


def percentiles(law: Law, repeats: int, random: Random) -> Floats:
    """p50 and p95 of some runs, shape (repeats, 2)."""
    runs = law.draws(repeats, SECONDS, random)
    return np.array([percentiles_ns(buckets_of(run.latencies_ns), (50.0, 95.0)) for run in runs], np.float64)


def shares(bounds: Bounds, random: Random) -> None:
    """Of requests beyond the true p95. One run cannot tell what runs differ by, nor three all regimes."""
    for name, law in LAWS.items():
        for repeats in (1, FEW):
            title = f"beyond p95, {repeats} of {SECONDS} s, {name}"
            coverage = share_coverage(law, repeats, 95, random)
            if repeats == 1 or law is SWITCHING:
                bounds.beside(title, coverage, "%")
            else:
                bounds.at_least(title, coverage, LEAST, "%")


def share_coverage(law: Law, repeats: int, percent: float, random: Random) -> float:
    """How often the interval holds the true share."""
    limit_ns = law.percentile_ns(percent, SECONDS)
    drawn = (law.draws(repeats, SECONDS, random) for _ in range(OF_SHARES))
    found = [share_of(*beyond(runs, limit_ns)).interval for runs in drawn]
    return 100 * sum(low <= 1 - percent / 100 <= high for low, high in found) / OF_SHARES


def beyond(runs: Sequence[Run], limit_ns: float) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Requests above a limit and all requests, of each second that has any, and which run it is of."""
    seconds = [(second, number) for number, run in enumerate(runs) for second in run.seconds if len(second)]
    hits = np.array([float((second > limit_ns).sum()) for second, _ in seconds])
    requests = np.array([float(len(second)) for second, _ in seconds])
    return hits, requests, np.array([number for _, number in seconds])


def covered(found: Sequence[LogRatio] | Sequence[GeometricMean], truth: float) -> float:
    """The percentage of intervals that hold the truth."""
    ends = [(one.low, one.high) for one in found]
    return (
        100
        * sum(low is not None and high is not None and low <= truth <= high for low, high in ends)
        / len(ends)
    )
