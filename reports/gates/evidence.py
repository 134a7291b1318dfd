"""What measurements say of one bound: an estimate with its interval, and how sure each side of it is."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, variance

from scipy.special import stdtr, stdtrit

from reports.stats.log_ratio import CONFIDENCE, RESOLUTION

LEVEL = (1 - CONFIDENCE) / 2
"""Of each one-sided test: together with the interval of 95 % they say the same."""
MOST_REPEATS = 1_000
"""More repeats than these nobody makes."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """`value` with its 95 % interval, beside a bound and what is tolerated beyond it.

    `p_broken` is how likely evidence so strong against the bound is while it is kept; `p_kept` how likely
    evidence so strong for it is while what is tolerated is exceeded. `beyond`: the estimate itself is beyond
    what is tolerated. `more` tells from the levels that the two must reach how many more repeats would decide
    if they came out like those there are; None where no number would. What is `certain` was counted and not
    estimated: chance has no part in it.
    """

    value: float
    low: float
    high: float
    p_broken: float
    p_kept: float
    beyond: bool
    runs: int
    more: Callable[[float, float], int | None] = lambda *_: None
    certain: bool = False


@dataclass(frozen=True)
class Mean:
    """A mean of so many values with its standard error and degrees of freedom.

    More of them make it surer, save where it is `final`: then its error is not theirs alone.
    """

    middle: float
    error: float
    freedom: float
    runs: int
    final: bool = False

    def grown(self, more: int) -> "Mean":
        """What it would be with more values like those there are."""
        runs = self.runs + more
        return Mean(self.middle, self.error * sqrt(self.runs / runs), self.freedom * runs / self.runs, runs)

    def reach(self) -> float:
        """How far its 95 % interval reaches to each side."""
        return float(stdtrit(self.freedom, (1 + CONFIDENCE) / 2)) * self.error

    def p_above(self, at: float) -> float:
        """How likely a mean so high is where the true one is `at`, by Student's t."""
        return float(stdtr(self.freedom, (at - self.middle) / self.error))


def mean_of(values: Sequence[float]) -> Mean:
    """Of two values or more."""
    return Mean(fmean(values), sqrt(variance(values) / len(values)), len(values) - 1, len(values))


def apart_of(now: Sequence[float], then: Sequence[float]) -> Mean:
    """Of values to those of two or more studies of other times, which may vary as much among themselves.

    However many they are, the first count as one, their mean: what was measured within the hour tells nothing
    of how the machine changes from one time to another. Source: G. J. Hahn and W. Q. Meeker, Statistical
    Intervals, Wiley 1991, the prediction interval of one future observation.
    """
    error = sqrt(variance(then) * (1 + 1 / len(then)))
    return Mean(fmean(now) - fmean(then), error, len(then) - 1, len(now), final=True)


def of_ratio(logs: Mean, bound: float, tolerated: float, at_most: bool) -> Evidence:
    """What the mean of logs of ratios says of a bound on the ratio.

    Repeats that came out alike do not make it sharper than histograms of three digits are.
    """
    finest = log(RESOLUTION) / float(stdtrit(logs.freedom, (1 + CONFIDENCE) / 2))
    sharp = replace(logs, error=max(logs.error, finest))
    return _of_mean(sharp, log(bound), log(tolerated), at_most, exp)


def of_values(values: Mean, bound: float, tolerated: float, at_most: bool) -> Evidence:
    """What the mean of a column over runs says of a bound on the column."""
    finest = abs(values.middle) * log(RESOLUTION) / float(stdtrit(values.freedom, (1 + CONFIDENCE) / 2))
    sharp = replace(values, error=max(values.error, finest) or 1e-9)
    return _of_mean(sharp, bound, tolerated, at_most, lambda value: value)


def _of_mean(
    mean: Mean, bound: float, tolerated: float, at_most: bool, shown: Callable[[float], float]
) -> Evidence:
    sign = 1 if at_most else -1
    whole = replace(mean, middle=sign * mean.middle)
    return Evidence(
        value=shown(mean.middle),
        low=shown(mean.middle - mean.reach()),
        high=shown(mean.middle + mean.reach()),
        p_broken=whole.p_above(sign * bound),
        p_kept=1 - whole.p_above(sign * tolerated),
        beyond=whole.middle > sign * tolerated,
        runs=mean.runs,
        more=lambda broken, kept: _more(whole, sign * bound, sign * tolerated, broken, kept),
    )


def _more(mean: Mean, bound: float, tolerated: float, broken: float, kept: float) -> int | None:
    if mean.final:
        return None

    def decides(more: int) -> bool:
        grown = mean.grown(more)
        is_broken = grown.p_above(bound) <= broken and mean.middle > tolerated
        return is_broken or 1 - grown.p_above(tolerated) <= kept

    return fewest(decides)


def fewest(decides: Callable[[int], bool]) -> int | None:
    """The fewest more repeats that decide, 1 at least; more than those decide, too. None where none do."""
    more = bisect_left(range(MOST_REPEATS), True, lo=1, key=decides)
    return more if more < MOST_REPEATS else None


def holm(p_values: Sequence[float]) -> list[float]:
    """The same, adjusted so that the chance of one false alarm among all is what each alone would have.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6 (1979).
    """
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
