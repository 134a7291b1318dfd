"""How many times more one thing has than another, with the interval that their repeats allow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from scipy.special import stdtr, stdtrit

from reports.format import multiple, multiples

CONFIDENCE = 0.95
UPPER = (1 + CONFIDENCE) / 2
"""Where an interval ends."""
RESOLUTION = 1.002
"""No interval is narrower to either side: two figures from histograms of three digits may differ by so much
where their values do not, and repeats that came out alike do not make them sharper.
"""


@dataclass(frozen=True)
class LogRatio:
    """A ratio of geometric means, `runs` being those of the side that has fewer, or pairs of them.

    `error` is the standard error of its logarithm, of Student's t with `freedom`; None where there are too
    few runs to tell, and then there is no interval.
    """

    ratio: float
    runs: int
    error: float | None = None
    freedom: float = inf

    @property
    def low(self) -> float | None:
        """Where its 95 % interval begins."""
        return None if self.error is None else self.ratio * exp(-errors_wide(self.freedom) * self.error)

    @property
    def high(self) -> float | None:
        """Where its 95 % interval ends."""
        return None if self.error is None else self.ratio * exp(errors_wide(self.freedom) * self.error)

    def p_above(self, at: float) -> float:
        """How likely a ratio so high is where the true one is `at`; 1 without an interval."""
        if self.error is None:
            return 1.0
        return float(stdtr(self.freedom, log(at / self.ratio) / self.error))

    @property
    def p_even(self) -> float:
        """How likely a ratio so far from 1, either way, is where the true one is 1; 1 without an interval."""
        return min(1.0, 2 * min(self.p_above(1), self.inverse.p_above(1)))

    def within(self, times: float) -> bool:
        """Whether its interval lies within so many times 1, to both sides."""
        return self.low is not None and self.high is not None and 1 / times <= self.low <= self.high <= times

    def to_record(self) -> dict[str, float | None]:
        """As study.json has it."""
        return {"ratio": self.ratio, "low": self.low, "high": self.high}

    @property
    def inverse(self) -> "LogRatio":
        """One over it."""
        return replace(self, ratio=1 / self.ratio)

    @property
    def times(self) -> str:
        """1.05× (0.99–1.11), or 1.05× without an interval."""
        return f"{self.figure}×" + (f" ({self.interval})" if self.interval else "")

    @property
    def figure(self) -> str:
        """The ratio, with as many decimals as it has beside its interval."""
        return multiple(self.ratio, self.low, self.high)

    @property
    def interval(self) -> str:
        """0.99–1.11, likewise; empty where there is none."""
        if self.low is None or self.high is None:
            return ""
        return multiples(self.ratio, self.low, self.high)


def log_ratio(over: Sequence[float], under: Sequence[float]) -> LogRatio:
    """The ratio of two sides' runs, each value above 0, and Welch's interval of the difference of their logs.

    Source: B. L. Welch, The generalization of "Student's" problem when several different population variances
    are involved, Biometrika 34 (1947); degrees of freedom by Welch and Satterthwaite. Logs, since a ratio's
    error is a factor. It reaches at least RESOLUTION to each side. Raises ValueError where a side has no
    value, or one that is not above 0.
    """
    tops, bottoms = [log(value) for value in over], [log(value) for value in under]
    if not tops or not bottoms:
        raise ValueError("a ratio takes a value on each side")
    middle, fewest = fmean(tops) - fmean(bottoms), min(len(tops), len(bottoms))
    if fewest < 2:
        return LogRatio(exp(middle), fewest)
    errors = [variance(side) / len(side) for side in (tops, bottoms)]
    error, freedom = welch(errors, (len(tops), len(bottoms)))
    return LogRatio(exp(middle), fewest, resolved(error, freedom), freedom)


def resolved(error: float, freedom: float) -> float:
    """A standard error of logs, or the one below which an interval would be narrower than RESOLUTION."""
    return max(error, log(RESOLUTION) / errors_wide(freedom))


def welch(errors: Sequence[float], sizes: Sequence[int], known: float = 0.0) -> tuple[float, float]:
    """The standard error of a difference of means and its degrees of freedom, by Welch and Satterthwaite.

    `errors` are the squared standard errors of the means, each estimated from so many values, of which there
    are two or more; `known` is a part of their sum that is not estimated, and so has no end of freedom.

    What is estimated gives at most twice the freedom of the smaller side, as two sides of that size would at
    best. Their formula takes the estimates for the true variances: where the two or three values of one side
    are alike by luck, its part of the error vanishes, and the freedom is that of the larger side.
    """
    whole, estimated = sum(errors) + known, sum(errors)
    guessed = sum(error**2 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    least = estimated**2 / (2 * (min(sizes) - 1))
    return sqrt(whole), whole**2 / max(guessed, least) if estimated else inf


def errors_wide(freedom: float) -> float:
    """How many standard errors a 95 % interval reaches to each side, by Student's t."""
    return float(stdtrit(freedom, UPPER))
