"""What measurements say of one bound: an estimate with its interval, and how sure each side of it is.

Neighbours in time are alike: a bad second has many bad requests, so a share of them is less sure than their
number says.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log, sqrt
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtri, stdtr

from reports.stats.log_ratio import CONFIDENCE, RESOLUTION, UPPER, errors_wide

LEVEL = (1 - CONFIDENCE) / 2
"""Of each one-sided test: together with the interval of 95 % they say the same."""
MOST_REPEATS = 1_000
"""More repeats than these nobody makes."""
LEAST_BLOCKS = 5
"""Seconds with results, of all runs together, below which nothing is known of how they vary."""
MOST_ALIKE = 0.95
"""Neighbours that are more alike than that cannot be told from a trend."""
MANY = float(ndtri(UPPER))
"""How many standard errors an interval reaches where the variance is known."""
Counts = npt.NDArray[np.float64]


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
        return errors_wide(self.freedom) * self.error

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


@dataclass(frozen=True)
class Share:
    """A share that was estimated; `effective` are the independent requests that would tell as much."""

    share: float
    effective: float

    def p_beyond(self, allowed: float, above: bool) -> float:
        """How likely a share so high, or so low, is where the true one is `allowed`: exact binomial tail."""
        if not above:
            return replace(self, share=1 - self.share).p_beyond(1 - allowed, above=True)
        hits = self.share * self.effective
        return float(betainc(hits, self.effective - hits + 1, allowed)) if hits > 0 else 1.0

    def grown(self, factor: float) -> "Share":
        """The same of so many times the requests."""
        return replace(self, effective=self.effective * factor)

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %: Clopper and Pearson's, of the effective requests."""
        hits, whole = self.share * self.effective, self.effective
        low = float(betaincinv(hits, whole - hits + 1, LEVEL)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, whole - hits, 1 - LEVEL)) if hits < whole else 1.0
        return low, high


def share_of(hits: Counts, requests: Counts, runs: npt.NDArray[np.int64]) -> Share:
    """The share of hits among requests, second by second; `runs` says of which run each is, from 0 on.

    Its variance is that of seconds, of which neighbours are alike, and what whole runs differ by beyond that,
    each with Student's t for how few there are of them. Sources: E. L. Korn and B. I. Graubard, Confidence
    intervals for proportions with small expected number of positive counts estimated from survey data, Survey
    Methodology 24 (1998), for effective requests and the exact tail; M. S. Bartlett, On the theoretical
    specification and sampling properties of autocorrelated time-series, Supplement to the Journal of the
    Royal Statistical Society 8 (1946), for how much neighbours that are alike tell.
    """
    whole = float(requests.sum())
    share = float(hits.sum()) / whole
    chance = share * (1 - share) / whole
    if chance <= 0:
        return Share(share, whole)
    of_runs = np.bincount(runs, hits - share * requests).astype(np.float64)
    own = (np.bincount(runs, hits) / np.bincount(runs, requests))[runs]
    within = max(chance, _of_seconds(hits - own * requests, runs, whole))
    between = max(0.0, _variance(of_runs, whole, len(of_runs) - 1) - within) * _few(len(of_runs) - 1)
    return Share(share, whole * chance / (within + between))


def _of_seconds(errors: Counts, runs: npt.NDArray[np.int64], whole: float) -> float:
    """The variance of the share by seconds, of which as few count as independent ones tell as much.

    `errors` are from the share of each second's own run: what runs differ by is no likeness of neighbours.
    """
    freedom, alike = len(errors) - int(runs[-1]) - 1, _alike(errors, runs)
    independent = max(1.0, (freedom + 1) * (1 - alike) / (1 + alike) - 1)
    return _variance(errors, whole, freedom) * (freedom + 1) / (independent + 1) * _few(independent)


def _alike(errors: Counts, runs: npt.NDArray[np.int64]) -> float:
    """How far a second's error is that of the one before it, 0 where it is not or nobody can tell.

    What is estimated from few seconds is too small. Source: F. H. C. Marriott and J. A. Pope, Bias in the
    estimation of autocorrelations, Biometrika 41 (1954).
    """
    neighbours, length = runs[1:] == runs[:-1], len(errors) / (int(runs[-1]) + 1)
    spread = float(errors @ errors) / len(errors)
    if length < LEAST_BLOCKS or not spread:
        return 0.0
    found = float((errors[1:] * errors[:-1])[neighbours].mean()) / spread
    return min(MOST_ALIKE, max(0.0, (found + 1 / length) / (1 - 3 / length)))


def _variance(errors: Counts, whole: float, freedom: int) -> float:
    return float(errors @ errors) * len(errors) / freedom / whole**2 if freedom > 0 else 0.0


def _few(freedom: float) -> float:
    """By how much more a variance with so few degrees of freedom may be off than a known one."""
    return (errors_wide(freedom) / MANY) ** 2 if freedom > 0 else 1.0
