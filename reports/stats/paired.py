"""Means of what repeats or pairs of them came to, how sure they are, and many tests at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, median, variance

from scipy.special import stdtr

from reports.stats.log_ratio import CONFIDENCE, LogRatio, errors_wide, resolved

LEAST_REPEATS, ADVISED_REPEATS = 3, 5
"""Repeats, or pairs of them, without which nothing is concluded of how they vary; and so many as are advised.

In 4 of 5 studies three pairs show a difference of 3.3 standard deviations of a pair, five pairs one of 1.7;
where ten comparisons are judged together, of 10 and 3.2.
"""
NOT_SIGNIFICANT = "not significantly different"
"""How readers meet what repeats do not tell apart."""
ALPHA = 1 - CONFIDENCE
"""Of all comparisons together that are looked at."""
LEAST_ERROR = 0.5
"""Of the middle error: with all of it three repeats find little; with a third of it a machine's two speeds
are taken for differences of endpoints twice as often.
"""
LESS, MORE = 0.9, 1.1
"""Between them two figures are about equal."""


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


def mean_of_logs(values: Sequence[float]) -> Mean:
    """Of the logarithms of two values or more, each above 0; its interval is no narrower than RESOLUTION."""
    mean = mean_of([log(value) for value in values])
    return replace(mean, error=resolved(mean.error, mean.freedom))


@dataclass(frozen=True)
class GeometricMean:
    """A geometric mean of repeats and its 95 % interval, None of a single one."""

    value: float
    low: float | None = None
    high: float | None = None


def geometric_mean(values: Sequence[float]) -> GeometricMean:
    """Of values above 0, with Student's interval of the mean of their logs, no narrower than RESOLUTION.

    Raises ValueError where there is no value, or one that is not above 0.
    """
    if len(values) < 2:
        return GeometricMean(exp(fmean(map(log, values))))
    mean = mean_of_logs(values)
    return GeometricMean(*(exp(mean.middle + side * mean.reach()) for side in (0, -1, 1)))


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


def paired_ratio(over: Mapping[int, float], under: Mapping[int, float]) -> LogRatio:
    """The ratio of two sides' values, each above 0, by repeat: of the repeats that both have, in pairs.

    Those of a study are interleaved, so that what a repeat's runs have in common cancels out. Student's t of
    the logs of their ratios; with fewer than LEAST_REPEATS pairs there is no interval, and the ratio is of
    all values. Source: W. S. Gosset ("Student"), The probable error of a mean, Biometrika 6 (1908). Raises
    ValueError where a side has no value, or one that is not above 0.
    """
    if not over or not under:
        raise ValueError("a ratio takes a value on each side")
    ratios = [over[key] / under[key] for key in over if key in under]
    if len(ratios) < LEAST_REPEATS:
        sides = [fmean(map(log, side.values())) for side in (over, under)]
        return LogRatio(exp(sides[0] - sides[1]), len(ratios))
    mean = mean_of_logs(ratios)
    return LogRatio(exp(mean.middle), mean.runs, mean.error, mean.freedom)


def with_least_error(found: Sequence[LogRatio]) -> list[LogRatio]:
    """The same, none with an error below half the middle one of those looked at, which are of one measure.

    Three repeats come out alike now and then by luck, above all where the machine has two speeds; the other
    comparisons show how much repeats vary. After G. K. Smyth, Linear models and empirical Bayes methods for
    assessing differential expression in microarray experiments, Statistical Applications in Genetics and
    Molecular Biology 3 (2004), but only where that makes less sure.
    """
    least = LEAST_ERROR * median([it.error for it in found if it.error is not None] or [0.0])
    return [it if it.error is None else replace(it, error=max(it.error, least)) for it in found]


def told_apart(found: Sequence[LogRatio]) -> list[bool]:
    """Which of the ratios looked at differ from 1: the chance that any is told wrongly is 5 %, by Holm."""
    return [p <= ALPHA for p in holm([it.p_even for it in found])]


def apart_from_best(best: Mapping[int, float], others: Sequence[Mapping[int, float]]) -> list[bool | None]:
    """For each of some others, whether its pairs show that it differs from the best; None of too few pairs.

    A side without a value has no pairs. The best was chosen after looking, so each comparison is one of as
    many as there are pairs of all: then the chance that any of equal ones is told apart is 5 %.
    """
    none = LogRatio(1.0, 0)
    ratios = (paired_ratio(best, other) if best and other else none for other in others)
    found = with_least_error(list(ratios))
    unseen = [1.0] * (len(others) * (len(others) - 1) // 2)
    adjusted = holm([*(it.p_even for it in found), *unseen])
    return [None if it.error is None else p <= ALPHA for it, p in zip(found, adjusted, strict=False)]


def p_unlike(found: LogRatio) -> float:
    """How likely a ratio so near 1 is where the true one is not within LESS to MORE: the larger of two tests.

    Source: D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach for
    assessing the equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15
    (1987).
    """
    return max(found.p_above(LESS), found.inverse.p_above(1 / MORE))
