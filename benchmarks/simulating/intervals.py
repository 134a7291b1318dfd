"""Intervals of means, ratios, pairs and percentiles: how often the true value lies in those of 95 %."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import (
    BATCHED,
    BIMODAL,
    LOGNORMAL,
    NOISY,
    SWITCHING,
    Floats,
    Law,
    Random,
    Run,
    buckets_of,
)
from reports.format import NS_PER_MS
from reports.histogram.buckets import percentiles_ns
from reports.stats.log_ratio import CONFIDENCE, LogRatio, log_ratio
from reports.stats.paired import GeometricMean, geometric_mean, paired_ratio
from reports.stats.percentiles import pooled_of

STUDIES, OF_RUNS, OF_CELLS, OF_OTHERS = 4_000, 1_000, 1_000, 400
"""Simulated for a line of the table: the chance error of a coverage of 95 % is 0.3, 0.7, 0.7 and 1.1 points.
"""
OFF = 2.0
"""Percentage points by which a coverage may be off."""
LEAST, MOST = 100 * CONFIDENCE - OFF, 100 * CONFIDENCE + OFF
CHANCE = 1.0
"""Points that chance may add for a cell's percentiles, of which there are many lines."""
SPREAD, QUIETER, OF_TURNS = 0.04, 0.01, 0.05
"""Standard deviations of logarithms: of runs, of a quieter cell's runs, and of what a turn's runs share."""
FEW, REPEATS = 3, (3, 5, 10)
FARTHER, OUTLIERS = 5.0, 0.05
SLOWER = 1.1
SECONDS = 20
NAMES = ("p50", "p95", "p99")
VALUES_SEED, RUNS_SEED, CELLS_SEED = 1, 2, 30
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


LAWS = {
    "lognormal": LOGNORMAL,
    "bimodal": BIMODAL,
    "seconds alike, runs differ": NOISY,
    "the same, 20 requests/s": replace(NOISY, per_s=20.0),
    "executed batches of 32": BATCHED,
}
"""Those that a promise on a cell's percentiles is made for."""
UNPROMISED = {
    "the same, 10 requests/s: p99 has a mark": (replace(NOISY, per_s=10.0), FEW),
    "seconds alike, runs differ": (NOISY, 1),
    "regimes of 60 s": (SWITCHING, FEW),
}
"""Those that it is known to fail on: few results beyond; what runs differ by is not in one run, nor are
regimes in a short one.
"""
OTHERS: dict[str, Draw] = {"heavy tails": heavy, "outliers": outlying, "skewed": skewed}


def promises(bounds: Bounds) -> None:
    """Coverage of each interval, in percent."""
    random = np.random.default_rng(VALUES_SEED)
    ratios(bounds, random)
    pairs(bounds, random)
    means(bounds, random)
    of_runs(bounds, np.random.default_rng(RUNS_SEED))
    of_cells(bounds)


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


def of_cells(bounds: Bounds) -> None:
    """Of percentiles of all requests of a cell's runs."""
    for what, law in LAWS.items():
        for name, held in coverage_of(law, FEW).items():
            bounds.between(f"{name}, {FEW} of {SECONDS} s, {what}", held, LEAST - CHANCE, MOST + CHANCE, "%")
    for what, (law, runs) in UNPROMISED.items():
        for name, held in coverage_of(law, runs, OF_OTHERS).items():
            bounds.beside(f"{name}, {runs} of {SECONDS} s, {what}", held, "%")


def coverage_of(law: Law, runs: int, studies: int = OF_CELLS) -> dict[str, float]:
    """Percent of so many studies whose interval of a percentile holds the true one, by its name."""
    random = np.random.default_rng(CELLS_SEED)
    truths_ms = {name: law.percentile_ns(float(name[1:])) / NS_PER_MS for name in NAMES}
    held = [_held(law.draws(runs, SECONDS, random), truths_ms) for _ in range(studies)]
    return dict(zip(NAMES, (100 * np.mean(held, axis=0)).tolist(), strict=True))


def _held(runs: Sequence[Run], truths_ms: Mapping[str, float]) -> list[bool]:
    """Whether the interval of each percentile of a cell's runs holds the truth; not where there is none."""
    blocks = [run.blocks for run in runs]
    found = [(pooled_of(blocks, name), truth_ms) for name, truth_ms in truths_ms.items()]
    return [
        it is not None and it.low is not None and it.high is not None and it.low <= truth_ms <= it.high
        for it, truth_ms in found
    ]


def covered(found: Sequence[LogRatio] | Sequence[GeometricMean], truth: float) -> float:
    """The percentage of intervals that hold the truth."""
    ends = [(one.low, one.high) for one in found]
    return (
        100
        * sum(low is not None and high is not None and low <= truth <= high for low, high in ends)
        / len(ends)
    )
