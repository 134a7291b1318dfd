"""The highest rate that keeps a bound, from runs that met it or did not, each of them maybe by chance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from reports.format import digits, ends
from reports.stats.shares import LEVEL

CONFIRMATIONS = 3
"""Longer runs in a row that must meet the bound for a rate to be an answer."""
MARGIN = 0.8
"""In logs, how far below and above the rates that were tried the highest may lie: a factor of 2.2."""
STEP = 0.02
"""In logs, the distance of the rates that are told apart: 2 %, far less than an interval reaches."""
SOFTNESS = tuple(np.geomspace(0.01, 0.8, 14).tolist())
"""In logs, how far from the highest rate five of six runs are judged rightly: from servers that fail within
1 % of it to percentiles that hardly depend on the rate."""
LEANING = (0.0, 0.4)
"""How many standard deviations runs lean towards meeting the bound. Few slow requests come together, so most
short runs see fewer of them than there are on average: at the highest rate more than half meet the bound."""
LAPSES = (0.0, 0.05)
"""Shares of the runs that miss the bound at any rate, since the server was cold or stalled."""
LEAST_CHANCE = 1e-300
"""So that each has a logarithm."""
EDGE = 0.05
"""Where the ends of the grid are so likely, as a share of the likeliest rate, the runs set no limit there."""

Grid = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RateTried:
    """A run at a rate: whether it met the bound, None where it tells nothing; whether it is to confirm it."""

    rate: float
    met: bool | None
    confirming: bool = False


def told(tried: Sequence[RateTried]) -> list[RateTried]:
    """What runs tell, in the order they were made: two in a row that tell nothing are a miss.

    The two are at one rate, and the first is left out: what spoiled one run is often over in the next.
    """
    ends = range(1, len(tried) + 1)
    return [
        replace(tried[end - 1], met=bool(tried[end - 1].met)) for end in ends if not asks_again(tried[:end])
    ]


def asks_again(tried: Sequence[RateTried]) -> bool:
    """Whether the last run told nothing and has to be made once more."""
    silent = takewhile(lambda run: run.met is None and run.rate == tried[-1].rate, reversed(tried))
    return len(list(silent)) % 2 == 1


def confirmations(known: Sequence[RateTried]) -> int:
    """How many runs in a row, up to the last, were to confirm a rate, and met the bound."""
    return len(list(takewhile(lambda run: run.confirming and run.met, reversed(known))))


@dataclass(frozen=True)
class HighestRate:
    """How sure it is that the highest rate is below each of some rates, which are given by their logs.

    It has no lower, or no upper, limit where a rate beyond those would be about as likely.
    """

    logs: Grid
    sure: Grid
    has_lower: bool
    has_upper: bool

    def at(self, share: float) -> float:
        """The rate that the highest one is below with this probability."""
        return float(np.exp(np.interp(share, self.sure, self.logs)))

    @property
    def median(self) -> float:
        """The rate that is as likely too high as too low."""
        return self.at(0.5)

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %; 0 or infinity for an end that the runs do not limit."""
        return self.at(LEVEL) if self.has_lower else 0.0, self.at(1 - LEVEL) if self.has_upper else inf

    @property
    def half_width(self) -> float:
        """How far the interval reaches to each side, as a share."""
        low, high = self.interval
        return sqrt(high / low) - 1 if low else inf


def interval_said(value: float, low: float, high: float, unit: str = "") -> str:
    """The interval beside a rate, as people read it: 38–62/s; 38/s or more; 62/s or less; not known."""
    if low and high < inf:
        return f"{ends(value, low, high)}{unit}"
    if low:
        return f"{digits(low)}{unit} or more"
    return f"{digits(high)}{unit} or less" if high < inf else "not known"


def highest_rate(known: Sequence[RateTried]) -> HighestRate:
    """From what one run or more told: the posterior of a probit model.

    A run at the rate r meets the bound with the probability (1 - λ) Φ((θ - log r) / τ + b). θ is the log of
    the highest rate; before the runs it is as likely anywhere, τ each of SOFTNESS, b each of LEANING, λ each
    of LAPSES.
    Sources: R. Waeber, P. I. Frazier, S. G. Henderson, Bisection search with noisy responses, SIAM Journal on
    Control and Optimization 51 (2013); D. J. Finney, Probit analysis, Cambridge 1947;
    F. A. Wichmann, N. J. Hill, The psychometric function I, Perception & Psychophysics 63 (2001), of λ.
    """
    counts = Counter((float(np.log(run.rate)), bool(run.met)) for run in known)
    tried = [log_rate for log_rate, _ in counts]
    logs = np.arange(min(tried) - MARGIN, max(tried) + MARGIN + STEP, STEP)
    softness, leaning = np.array(SOFTNESS)[:, None], np.array(LEANING)[:, None, None]
    lapses = np.array(LAPSES)[:, None, None, None]
    likelihood = np.zeros((len(LAPSES), len(LEANING), len(SOFTNESS), len(logs)))
    for (log_rate, met), count in counts.items():
        distance = (logs - log_rate) / softness + leaning
        chance = (1 - lapses) * ndtr(distance) if met else ndtr(-distance) + lapses * ndtr(distance)
        likelihood += count * np.log(np.maximum(chance, LEAST_CHANCE))
    weights = np.exp(likelihood - likelihood.max()).sum(axis=(0, 1, 2))
    lower, upper = weights[[0, -1]] < EDGE * weights.max()
    return HighestRate(logs, np.cumsum(weights) / weights.sum(), bool(lower), bool(upper))
