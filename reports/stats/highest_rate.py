"""The highest rate that keeps a bound, from runs that met it or did not, each of them maybe by chance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

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
    """How sure it is that the highest rate is below each of some rates, which are given by their logs."""

    logs: Grid
    sure: Grid

    def at(self, share: float) -> float:
        """The rate that the highest one is below with this probability."""
        return float(np.exp(np.interp(share, self.sure, self.logs)))

    @property
    def median(self) -> float:
        """The rate that is as likely too high as too low."""
        return self.at(0.5)

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        return self.at(LEVEL), self.at(1 - LEVEL)

    @property
    def half_width(self) -> float:
        """How far the interval reaches to each side, as a share."""
        low, high = self.interval
        return sqrt(high / low) - 1


def highest_rate(known: Sequence[RateTried]) -> HighestRate:
    """From what one run or more told: the posterior of a probit model.

    A run at the rate r meets the bound with the probability Φ((θ - log r) / τ + b). θ is the logarithm of the
    highest rate; before the runs it is as likely anywhere, τ as likely each of SOFTNESS, b each of LEANING.
    Sources: R. Waeber, P. I. Frazier, S. G. Henderson, Bisection search with noisy responses, SIAM Journal on
    Control and Optimization 51 (2013); D. J. Finney, Probit analysis, Cambridge 1947.
    """
    counts = Counter((float(np.log(run.rate)), bool(run.met)) for run in known)
    tried = [log_rate for log_rate, _ in counts]
    logs = np.arange(min(tried) - MARGIN, max(tried) + MARGIN + STEP, STEP)
    softness, leaning = np.array(SOFTNESS)[:, None], np.array(LEANING)[:, None, None]
    likelihood = np.zeros((len(LEANING), len(SOFTNESS), len(logs)))
    for (log_rate, met), count in counts.items():
        distance = (logs - log_rate) / softness + leaning
        likelihood += count * log_ndtr(distance if met else -distance)
    weights = np.exp(likelihood - likelihood.max()).sum(axis=(0, 1))
    return HighestRate(logs, np.cumsum(weights) / weights.sum())
