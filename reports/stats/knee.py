"""Where more users bring too little: the knee, how many users are enough, a fall beyond the highest."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isclose, log, log2, sqrt
from statistics import fmean, variance

from scipy.special import stdtrit

from reports.stats.log_ratio import RESOLUTION

ENOUGH_SHARE = 0.95
"""Of the highest rate."""
RISING = 1.07
"""The last doubling of the users must gain more for the curve to count as rising still: ENOUGH_SHARE would be
reached by 5 %, and runs vary by some percent.
"""
LEAST_FALL = 0.95
"""A peak is claimed only for a fall below this share of the highest rate: less changes no decision."""
FALSE_PEAKS = 0.025
"""How often chance alone may claim one, over all levels together."""


@dataclass(frozen=True)
class Level:
    """Some users, the rates of their repeats, and a latency: p95 or mean, the same for a whole curve."""

    users: float
    rates: tuple[float, ...]
    latency_ms: float

    @property
    def rate(self) -> float:
        """The geometric mean of the repeats."""
        return exp(self.middle)

    @property
    def power(self) -> float:
        """Rate by latency: it grows while a step gains more, in percent, than it costs.

        Source: L. Kleinrock, Power and deterministic rules of thumb for probabilistic problems in computer
        communications, IEEE International Conference on Communications (1979).
        """
        return self.rate / self.latency_ms if self.latency_ms else inf

    @property
    def middle(self) -> float:
        """The mean of the logs of the rates."""
        return fmean(map(log, self.rates))

    @property
    def variance(self) -> float:
        """Of the logs of the rates, of which there are two or more."""
        return variance(map(log, self.rates))


@dataclass(frozen=True)
class Fall:
    """The level `at` has `share` of the rate of the level `peak`, and by the test at most `most` of it."""

    peak: Level
    at: Level
    share: float
    most: float


def knee_of(levels: Sequence[Level]) -> Level:
    """The one with the greatest power."""
    return max(levels, key=lambda level: level.power)


def enough(levels: Sequence[Level]) -> Level:
    """The fewest users that reach ENOUGH_SHARE of the highest rate; the levels are in the order of users."""
    least = ENOUGH_SHARE * max(level.rate for level in levels)
    return next(level for level in levels if level.rate >= least or isclose(level.rate, least))


def still_rising(levels: Sequence[Level]) -> bool:
    """Whether the last level is the knee, and the last doubling of the users gains more than RISING.

    A step that is no doubling counts by the power that makes it one.
    """
    last = levels[-1]
    before = [level for level in levels[:-1] if 2 * level.users <= last.users] or levels[:1]
    doublings = log2(last.users / before[-1].users)
    return knee_of(levels) is last and last.rate > before[-1].rate * RISING**doublings


def fall(levels: Sequence[Level]) -> Fall | None:
    """The fall from the highest level to the last one, where a t test shows one; None else.

    Its standard deviation of log rates is that of all levels together, and for a level that varies more that
    of its own. The chance is shared between the levels (Bonferroni), since any of them may turn out to be the
    highest. Only levels of two runs or more count, which have a variance.
    """
    repeated = [level for level in levels if len(level.rates) > 1]
    if len(repeated) < 2:
        return None
    peak, last = max(repeated, key=lambda level: level.middle), repeated[-1]
    freedom = sum(len(level.rates) - 1 for level in repeated)
    together = sum(level.variance * (len(level.rates) - 1) for level in repeated) / freedom
    least = max(together, log(RESOLUTION) ** 2)
    error = sqrt(sum(max(level.variance, least) / len(level.rates) for level in (peak, last)))
    lower, wide = last.middle - peak.middle, float(stdtrit(freedom, 1 - FALSE_PEAKS / (len(repeated) - 1)))
    found = Fall(peak, last, exp(lower), exp(lower + wide * error))
    enough_less = found.share < LEAST_FALL and not isclose(found.share, LEAST_FALL)
    return found if enough_less and found.most < 1 else None
