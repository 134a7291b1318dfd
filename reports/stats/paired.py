"""Means of what repeats or pairs of them came to, how sure they are, and many tests at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from scipy.special import stdtr

from reports.stats.log_ratio import errors_wide


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
