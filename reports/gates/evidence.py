"""What measurements say of one bound: an estimate with its interval, and how sure each side of it is."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log, sqrt
from statistics import fmean, variance

from reports.stats.log_ratio import RESOLUTION, errors_wide
from reports.stats.paired import Mean

MOST_REPEATS = 1_000
"""More repeats than these nobody makes."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """`value` with its 95 % interval, beside a bound and what is tolerated beyond it.

    `chances` tells `p_broken` and `p_kept` with so many more repeats that come out like those there are.
    `beyond`: the estimate itself is beyond what is tolerated; `beyond_then`: it is with more repeats, None
    where no number of them would decide. What is `certain` was counted and not estimated: its
    interval says nothing.
    """

    value: float
    low: float
    high: float
    chances: Callable[[int], tuple[float, float]]
    beyond: bool
    beyond_then: bool | None
    certain: bool = False

    @cached_property
    def p_broken(self) -> float:
        """How likely evidence so strong against the bound is while it is kept."""
        return self.chances(0)[0]

    @cached_property
    def p_kept(self) -> float:
        """How likely evidence so strong for the bound is while what is tolerated is exceeded."""
        return self.chances(0)[1]

    def more(self, broken: float, kept: float) -> int | None:
        """How many more repeats bring one of the two down to its level; None where no number does."""

        def decides(count: int) -> bool:
            p_broken, p_kept = self.chances(count)
            return (bool(self.beyond_then) and p_broken <= broken) or p_kept <= kept

        return None if self.beyond_then is None else fewest(decides)


def apart_of(now: Sequence[float], then: Sequence[float]) -> Mean:
    """Of values to those of two or more studies of other times, which may vary as much among themselves.

    However many they are, the first count as one, their mean: what was measured within the hour tells nothing
    of how the machine changes from one time to another. Source: G. J. Hahn and W. Q. Meeker, Statistical
    Intervals, Wiley 1991, the prediction interval of one future observation.
    """
    error = sqrt(variance(then) * (1 + 1 / len(then)))
    return Mean(fmean(now) - fmean(then), error, len(then) - 1, len(now), final=True)


def of_ratio(logs: Mean, bound: float, tolerated: float, at_most: bool) -> Evidence:
    """What the mean of logs of ratios says of a bound on the ratio."""
    return _of_mean(logs, log(RESOLUTION), log(bound), log(tolerated), at_most, exp)


def of_values(values: Mean, bound: float, tolerated: float, at_most: bool) -> Evidence:
    """What the mean of a column over runs says of a bound on the column."""
    return _of_mean(values, abs(values.middle) * log(RESOLUTION), bound, tolerated, at_most, float)


def _of_mean(
    found: Mean, finest: float, bound: float, tolerated: float, at_most: bool, shown: Callable[[float], float]
) -> Evidence:
    """Repeats that came out alike do not make it sharper than `finest`, as histograms of three digits are."""
    mean = replace(found, error=max(found.error, finest / errors_wide(found.freedom)) or 1e-9)
    sign = 1 if at_most else -1
    whole = replace(mean, middle=sign * mean.middle)

    def chances(more: int) -> tuple[float, float]:
        grown = whole.grown(more)
        return grown.p_above(sign * bound), 1 - grown.p_above(sign * tolerated)

    beyond = whole.middle > sign * tolerated
    return Evidence(
        value=shown(mean.middle),
        low=shown(mean.middle - mean.reach()),
        high=shown(mean.middle + mean.reach()),
        chances=chances,
        beyond=beyond,
        beyond_then=None if mean.final else beyond,
    )


def fewest(decides: Callable[[int], bool]) -> int | None:
    """The fewest more repeats that decide, 1 at least; more than those decide, too. None where none do."""
    more = bisect_left(range(MOST_REPEATS), True, lo=1, key=decides)
    return more if more < MOST_REPEATS else None
