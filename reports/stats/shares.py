"""The share of requests that were beyond something, and how many independent requests would tell as much.

Neighbours in time are alike: a bad second has many bad requests, so a share of them is less sure than their
number says. Where no second was bad, only the number of seconds says how rare a bad one is.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, log

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtri

from reports.stats.log_ratio import CONFIDENCE, UPPER, errors_wide
from reports.summary.blocks import Counts

LEVEL = (1 - CONFIDENCE) / 2
"""Of each one-sided test: together with the interval of 95 % they say the same."""
LEAST_BLOCKS = 5
"""Seconds with results, of all runs together, below which nothing is known of how they vary."""
MOST_ALIKE = 0.95
"""Neighbours that are more alike than that cannot be told from a trend."""
MANY = float(ndtri(UPPER))
"""How many standard errors an interval reaches where the variance is known."""
UNSEEN_STEPS = 201
"""How finely the share of seconds that were not seen is tried out."""


@dataclass(frozen=True)
class Share:
    """A share that was estimated; `effective` are the independent requests that would tell as much.

    It was seen in so many `seconds`, infinite where other seconds than those are out of the question. Of how
    these vary as much is known as `freedom`, the degrees of freedom of their variance, says.
    """

    share: float
    effective: float
    seconds: float = inf
    freedom: float = inf

    def p_beyond(self, allowed: float, above: bool) -> float:
        """How likely a share so high, or so low, is at most where the true one is `allowed`.

        By the exact binomial tail of the effective requests, and the chance that none of the `seconds` was of
        a kind that differs from all that were seen, in which every request lies on the other side: however
        frequent that kind is, the likeliest case counts. With no hit in m seconds it is (1 - allowed) ** m.
        Source: J. A. Hanley and A. Lippman-Hand, If nothing goes wrong, is everything all right?, JAMA 249
        (1983), with seconds as what is independent.
        """
        if not above:
            return replace(self, share=1 - self.share).p_beyond(1 - allowed, above=True)
        hits = self.share * self.effective
        if hits <= 0 or allowed <= 0:
            return float(hits <= 0)
        seen = np.linspace(allowed, 1, UNSEEN_STEPS) if self.seconds < inf else np.ones(1)
        missed = seen ** min(self.seconds, self.effective)
        return float((missed * betainc(hits, self.effective - hits + 1, allowed / seen)).max())

    def grown(self, factor: float) -> "Share":
        """The same of so many times the requests and seconds."""
        return replace(self, effective=self.effective * factor, seconds=self.seconds * factor)

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %: Clopper and Pearson's, of the effective requests."""
        hits, whole = self.share * self.effective, self.effective
        low = float(betaincinv(hits, whole - hits + 1, LEVEL)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, whole - hits, 1 - LEVEL)) if hits < whole else 1.0
        return low, high


def share_of(hits: Counts, requests: Counts, runs: npt.NDArray[np.int64]) -> Share:
    """The share of hits among requests, second by second; `runs` says of which run each is, from 0 on.

    Its variance is that of seconds, of which neighbours are alike, and what whole runs differ by beyond what
    chance explains, each with Student's t for how few there are of them. Where there is no hit, or nothing
    else, seconds are all that counts. Sources: E. L. Korn and B. I. Graubard, Confidence
    intervals for proportions with small expected number of positive counts estimated from survey data, Survey
    Methodology 24 (1998), for effective requests and the exact tail; M. S. Bartlett, On the theoretical
    specification and sampling properties of autocorrelated time-series, Supplement to the Journal of the
    Royal Statistical Society 8 (1946), for how much neighbours that are alike tell.
    """
    whole = float(requests.sum())
    share = float(hits.sum()) / whole
    chance, seconds = share * (1 - share) / whole, float(len(requests))
    if chance <= 0:
        return Share(share, min(whole, seconds), seconds)
    of_runs = np.bincount(runs, hits - share * requests).astype(np.float64)
    own = (np.bincount(runs, hits) / np.bincount(runs, requests))[runs]
    of_seconds, freedom = _of_seconds(hits - own * requests, runs, whole)
    within = max(chance, of_seconds)
    between = max(0.0, _variance(of_runs, whole, len(of_runs) - 1) - chance) * _few(len(of_runs) - 1)
    return Share(share, whole * chance / (within + between), seconds, freedom)


def seconds_needed(allowed: float) -> int:
    """Seconds without a bad one that show at LEVEL that fewer than the allowed share of them are bad."""
    return ceil(log(LEVEL) / log(1 - allowed))


def _of_seconds(errors: Counts, runs: npt.NDArray[np.int64], whole: float) -> tuple[float, float]:
    """The variance of the share by seconds, and its degrees of freedom: those of as many independent seconds.

    `errors` are from the share of each second's own run: what runs differ by is no likeness of neighbours.
    """
    freedom, alike = len(errors) - int(runs[-1]) - 1, alike_neighbours(errors, runs)
    independent = max(1.0, (freedom + 1) * (1 - alike) / (1 + alike) - 1)
    variance = _variance(errors, whole, freedom) * (freedom + 1) / (independent + 1) * _few(independent)
    return variance, independent


def alike_neighbours(errors: Counts, runs: npt.NDArray[np.int64]) -> float:
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
