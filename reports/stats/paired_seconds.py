"""The ratio of the mean latencies of two cells that ran at the same time, from their seconds in pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm, sqrt

import numpy as np
import numpy.typing as npt

from reports.fold.windows import Results
from reports.histogram.buckets import middles_ns
from reports.stats.log_ratio import LogRatio, resolved
from reports.stats.shares import alike_neighbours
from reports.summary.blocks import Counts, RunBlocks

LEAST_PAIRS = 20
"""Below so many seconds in pairs nothing is concluded of how they vary."""


@dataclass(frozen=True)
class SecondPairs:
    """The seconds in which both cells had successes: their means in ns, weights, and which run each is of.

    `width_s` is how many seconds each is: more than 1 of long runs.
    """

    over_ns: Counts
    under_ns: Counts
    weights: Counts
    runs: npt.NDArray[np.int64]
    width_s: int = 1

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def of(cls, sides: Sequence[tuple[RunBlocks, RunBlocks]]) -> "SecondPairs":
        """Of runs in pairs; a second in which one of a pair has no success is left out."""
        width_s = lcm(*(run.width_s for pair in sides for run in pair))
        found = (pairs for side in sides if (pairs := [*_both(*side, width_s)]))
        rows = [(at, *pair) for at, pairs in enumerate(found) for pair in pairs]
        runs, over, under, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        means = [np.array(side, np.float64) for side in (over, under, weights)]
        return cls(means[0], means[1], means[2], np.array(runs, np.int64), width_s)

    @property
    def ratio(self) -> LogRatio:
        """The mean of the one side over that of the other, with an interval of LEAST_PAIRS or more.

        Both sums have the same weights, so that what a second does to both cancels out: this is the ratio
        estimator, whose error is that of its residuals (W. G. Cochran, Sampling Techniques, 3rd ed., Wiley
        1977, chapter 6). Neighbours among them may be alike, so fewer count, as in `reports.stats.shares`.
        Where runs differ by more than that explains, their number counts instead.
        """
        over, under = self.weights * self.over_ns, self.weights * self.under_ns
        ratio, count = float(over.sum() / under.sum()), int(self.runs[-1]) + 1
        if len(self) < LEAST_PAIRS:
            return LogRatio(ratio, count)
        each = (np.bincount(self.runs, over) / np.bincount(self.runs, under))[self.runs]
        within, freedom = _of_seconds((over - each * under) / over.sum(), self.runs)
        of_runs = np.bincount(self.runs, over - ratio * under) / over.sum()
        between = float(of_runs @ of_runs) * count / (count - 1) if count > 1 else 0.0
        variance, freedom = (between, count - 1) if between > within else (within, freedom)
        return LogRatio(ratio, count, resolved(sqrt(variance), freedom), freedom)


def _both(over: RunBlocks, under: RunBlocks, width_s: int) -> Iterator[tuple[float, float, float]]:
    """Both means of each second, and the weight that two means of so many values have as a difference."""
    sides = [_means(run, width_s) for run in (over, under)]
    for at in sorted(sides[0].keys() & sides[1].keys()):
        (top, many), (bottom, few) = (side[at] for side in sides)
        yield top, bottom, many * few / (many + few)


def _means(run: RunBlocks, width_s: int) -> dict[int, tuple[float, int]]:
    """The mean latency of each second that has a success, and how many it has."""
    merged: dict[int, Results] = {}
    for second, found in run.by_second.items():
        merged.setdefault(second // width_s, Results(found.names)).merge(found)
    whole = {at: found.histogram("latency") for at, found in merged.items() if found.ok}
    return {at: (float(it.counts @ middles_ns(it.indices)) / it.total, it.total) for at, it in whole.items()}


def _of_seconds(errors: Counts, runs: npt.NDArray[np.int64]) -> tuple[float, float]:
    """The variance of the sum of these errors, and its degrees of freedom: as many as are independent."""
    freedom, alike = len(errors) - int(runs[-1]) - 1, alike_neighbours(errors, runs)
    independent = max(1.0, (freedom + 1) * (1 - alike) / (1 + alike) - 1)
    white = float(errors @ errors) * len(errors) / freedom
    return white * (freedom + 1) / (independent + 1), independent
