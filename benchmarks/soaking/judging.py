"""Does a figure grow? Pure: from looks to a slope and a rise, from minutes to a ratio with its interval.

A slope through medians of parts is robust, so that it is blind to what is late: a leak in the last sixth of
the time, or one great step, leaves it at 0. Therefore the rise is judged beside it: from the lowest part's
median to the last part's, whichever part is the lowest. What comes in the second half of the last part is
seen by neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from statistics import median
from typing import NamedTuple

from scipy.stats import theilslopes

BLOCKS = 20
"""Parts of a span whose medians a slope is laid through. Looks that follow one another are alike, since
memory grows by steps and stays; medians of parts are less so, and the interval takes its points for
independent."""
LEAST_BLOCKS = 8
LONG_MIN = 5.0
"""Judged minutes from which on a slope is judged: in less, a step of an allocator bends it past any bound."""
STEP_MB = 1.0
"""What memory may rise by at any time, once, beside its bound a minute: an arena of an allocator."""
MOST_MORE = 2
"""Descriptors at the end above the fewest before: a log that was opened late, a connection more."""
LEAST_MINUTES = 5
"""On each side of a comparison: of 5 and 5, the ranks give a 95 % interval that is not all of them."""
ALIKE = 0.10
MOST_CHANCE = 0.025
"""On each side of an interval."""

HOLDS, BROKEN, UNTOLD = "holds", "BROKEN", "cannot be told"


class Point(NamedTuple):
    """A figure at a moment, in minutes."""

    at_min: float
    value: float


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether it may be this one."""
        return self.low <= value <= self.high


def blocks(points: Sequence[Point], count: int = BLOCKS) -> list[Point]:
    """The medians of so many parts of equal time; those that have points."""
    if not points:
        return []
    first, span = points[0].at_min, (points[-1].at_min - points[0].at_min) or 1.0
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(min(count - 1, int((point.at_min - first) / span * count)), []).append(point)
    return [Point(*(median(column) for column in zip(*parts[at], strict=True))) for at in sorted(parts)]


def slope(points: Sequence[Point]) -> Interval | None:
    """A minute's growth after Theil and Sen: the median of the slopes of all pairs of parts.

    None where there are too few parts. A figure that never moves has the interval 0 to 0.
    """
    parts = blocks(points)
    if len(parts) < LEAST_BLOCKS:
        return None
    times, values = zip(*parts, strict=True)
    found = theilslopes(values, times, 0.95)
    return Interval(float(found.slope), float(found.low_slope), float(found.high_slope))


def growth(found: Interval | None, most: float) -> str:
    """Whether it grows by less than `most` a minute."""
    if found is None:
        return UNTOLD
    if found.high < most:
        return HOLDS
    return BROKEN if found.low >= most else UNTOLD


def rise(points: Sequence[Point]) -> float | None:
    """How far the last part's median lies above the lowest part's: at least the whole rise from the first to
    the last, and all of a late one. None where there are too few parts.

    >>> rise([Point(at / 60, 200.0 if at > 50 else 100.0) for at in range(60)])
    100.0
    """
    parts = blocks(points)
    if len(parts) < LEAST_BLOCKS:
        return None
    return parts[-1].value - min(part.value for part in parts)


def rises(found: float | None, minutes: float, most: float) -> str:
    """Whether a rise in MB within so many minutes is less than `most` a minute.

    With one step more it cannot be told, or holds where the time is short; from there on it is broken.
    """
    if found is None:
        return UNTOLD
    if found >= STEP_MB + most * minutes:
        return BROKEN
    return HOLDS if found < most * minutes or minutes < LONG_MIN else UNTOLD


def stays(points: Sequence[Point]) -> str:
    """Whether a count stays: it ends at no more than 2 above its lowest part."""
    found = rise(points)
    if found is None:
        return UNTOLD
    return HOLDS if found <= MOST_MORE else BROKEN


def ratio(first: Sequence[float], last: Sequence[float]) -> Interval | None:
    """How many times the first minutes' figure the last minutes' is, after Hodges and Lehmann: the median of
    all pairs' ratios, with the interval that the ranks of two equal samples give. None with too few minutes.
    """
    if min(len(first), len(last)) < LEAST_MINUTES or min(first) <= 0:
        return None
    pairs = sorted(after / before for before, after in product(first, last))
    cut = pairs_outside(len(first), len(last))
    return Interval(median(pairs), pairs[cut], pairs[-1 - cut])


def pairs_outside(first: int, last: int) -> int:
    """How many of the sorted pairs lie outside of an interval on each side: the most that chance allows.

    >>> pairs_outside(5, 5)
    2
    """
    counts, total = rank_sums(first, last), comb(first + last, first)
    reached, found = 0, 0
    for pairs, count in enumerate(counts):
        reached += count
        if reached / total > MOST_CHANCE:
            break
        found = pairs
    return found


def rank_sums(first: int, last: int) -> list[int]:
    """In how many orders of two samples so many pairs have the first's value above the last's."""
    held = {(0, other): [1] for other in range(last + 1)} | {(own, 0): [1] for own in range(first + 1)}
    for own, other in product(range(1, first + 1), range(1, last + 1)):
        # The greatest of all is of the first sample, and above all the others; or of the last.
        above, below = [0] * other + held[own - 1, other], held[own, other - 1]
        width = max(len(above), len(below))
        padded = (one + [0] * (width - len(one)) for one in (above, below))
        held[own, other] = [sum(pair) for pair in zip(*padded, strict=True)]
    return held[first, last]


def sameness(found: Interval | None) -> str:
    """Whether a ratio is 1 within its doubt, or within ±10 %."""
    if found is None:
        return UNTOLD
    near = found.low >= 1 - ALIKE and found.high <= 1 + ALIKE
    if near or (found.includes(1.0) and abs(found.estimate - 1) <= ALIKE):
        return HOLDS
    return UNTOLD if found.includes(1.0) or abs(found.estimate - 1) <= ALIKE else BROKEN
