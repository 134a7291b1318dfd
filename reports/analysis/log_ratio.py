"""How many times more one thing has than another, with the interval that their repeats allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance

from scipy.special import stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class LogRatio:
    """A ratio of geometric means and its 95 % interval, None where a side has a single run."""

    ratio: float
    low: float | None
    high: float | None
    runs: int
    """Of the side that has fewer."""

    @property
    def significant(self) -> bool:
        """Whether the interval leaves 1 out; False without an interval."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def log_ratio(over: Sequence[float], under: Sequence[float]) -> LogRatio:
    """The ratio of two sides' runs, each value above 0, and Welch's interval of the difference of their logs.

    Source: B. L. Welch, The generalization of "Student's" problem when several different population variances
    are involved, Biometrika 34 (1947); degrees of freedom by Welch and Satterthwaite. Logs, since a ratio's
    error is a factor. Raises ValueError where a side has no value, or one that is not above 0.
    """
    tops, bottoms = [log(value) for value in over], [log(value) for value in under]
    if not tops or not bottoms:
        raise ValueError("a ratio takes a value on each side")
    middle, fewest = fmean(tops) - fmean(bottoms), min(len(tops), len(bottoms))
    if fewest < 2:
        return LogRatio(exp(middle), None, None, fewest)
    errors = [variance(side) / len(side) for side in (tops, bottoms)]
    half = _quantile(errors, (len(tops), len(bottoms))) * sqrt(sum(errors))
    return LogRatio(exp(middle), exp(middle - half), exp(middle + half), fewest)


def _quantile(errors: Sequence[float], sizes: Sequence[int]) -> float:
    """How many standard errors the interval reaches to each side; 0 where nothing varies."""
    whole = sum(errors)
    if not whole:
        return 0.0
    freedom = whole**2 / sum(error**2 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
