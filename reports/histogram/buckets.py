"""HdrHistogram's buckets of 3 digits as numpy sees them: where a value lies, what a bucket stands for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NS_PER_US = 1_000
# Values below 2,048 have a bucket each; from there on every doubling is cut into 1,024 buckets.
FIRST_BITS = 11
HALF_BITS = FIRST_BITS - 1


@dataclass(frozen=True)
class Buckets:
    """How many values lie in which buckets; an index may stand in any place and more than once."""

    indices: Ints
    counts: Ints

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def in_order(self) -> bool:
        """Whether each bucket stands once, and after all lower ones."""
        return bool((self.indices[1:] > self.indices[:-1]).all())


EMPTY = Buckets(np.empty(0, np.int64), np.empty(0, np.int64))


def together(parts: Iterable[Buckets]) -> Buckets:
    """The counts of all parts."""
    found = list(parts) or [EMPTY]
    return Buckets(
        np.concatenate([part.indices for part in found]), np.concatenate([part.counts for part in found])
    )


def compact(parts: Iterable[Buckets]) -> Buckets:
    """The counts of all parts, each bucket once and in order, in memory of its own."""
    whole = together([part for part in parts if len(part.indices)])
    if whole.in_order:
        return whole
    # as doubles, which are exact up to 2**53
    lowest = whole.indices.min()
    counts = np.bincount(whole.indices - lowest, weights=whole.counts)
    indices = np.flatnonzero(counts > 0)
    return Buckets(indices + lowest, counts[indices].astype(np.int64))


def indices_of(values_us: Ints) -> Ints:
    """The bucket of each value in whole microseconds."""
    _, bits = np.frexp((values_us | ((1 << FIRST_BITS) - 1)).astype(np.float64))
    doublings = bits.astype(np.int64) - FIRST_BITS
    indices: Ints = (doublings << HALF_BITS) + (values_us >> doublings)
    return indices


def middles_ns(indices: Ints) -> npt.NDArray[np.float64]:
    """The middle of each bucket, at most 0.05 % from any value in it, or 0.5 µs."""
    doublings = np.maximum((indices >> HALF_BITS) - 1, 0)
    lowest_us = (indices - (doublings << HALF_BITS)) << doublings
    middles: npt.NDArray[np.float64] = (lowest_us + ((1 << doublings) - 1) / 2) * NS_PER_US
    return middles


def percentiles_ns(buckets: Buckets, percents: Sequence[float]) -> list[float | None]:
    """The values of nearest rank at some percentiles; None for each where nothing was counted."""
    whole = buckets if buckets.in_order else compact([buckets])
    reached = np.cumsum(whole.counts)
    if not len(reached) or not reached[-1]:
        return [None] * len(percents)
    ranks = [rank(int(reached[-1]), percent) for percent in percents]
    found: list[float | None] = middles_ns(whole.indices[np.searchsorted(reached, ranks)]).tolist()
    return found


def rank(total: int, percent: float) -> int:
    """Which of `total` sorted values, counted from 1, stands at a percentile: 990 for the 99th of 1,000."""
    # 99.9 has no exact double, and a rank that is whole must not be rounded up for that
    return max(1, ceil(round(total * percent / 100, 6)))


def mean_ns(buckets: Buckets) -> float | None:
    """The mean, to 0.05 %; None where nothing was counted."""
    total = buckets.total
    return float(middles_ns(buckets.indices) @ buckets.counts) / total if total else None
