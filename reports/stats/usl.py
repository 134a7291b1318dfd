"""How throughput grows with users: the Universal Scalability Law, where the data carry it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from reports.format import digits
from reports.stats.usl_bootstrap import bootstrapped
from reports.stats.usl_doubt import few_points, flat, poor, undetermined
from reports.stats.usl_fit import Floats, exact_fit, slowdown, without_traces

FAR_TIMES = 2.0
"""The highest level: a peak beyond so many times it is not told."""
INTERVAL = (2.5, 97.5)
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{digits(self.value)} ({digits(self.low)}–{digits(self.high)})"


@dataclass(frozen=True)
class Peak:
    """The users at which the curve is highest, its rate there, and whether that is outside the levels."""

    users: Estimate
    rate: float
    extrapolated: bool


@dataclass(frozen=True)
class Fit:
    """`lambda_` is the rate of one user, `sigma` the share that is done one at a time, `kappa` the share that
    each pair of users costs.

    `peak` is None where `no_peak` says why. `r_squared` is the share of the logs' variance that the curve
    explains. `levels` are the lowest and the highest users, `runs` the points behind it.
    """

    lambda_: Estimate
    sigma: Estimate
    kappa: Estimate
    peak: Peak | None
    no_peak: str
    r_squared: float
    levels: tuple[float, float]
    runs: int

    def rate_at(self, users: float) -> float:
        """The curve's rate at some users."""
        sigma, kappa = self.sigma.value, self.kappa.value
        return self.lambda_.value * users / (1 + sigma * (users - 1) + kappa * users * (users - 1))


@dataclass(frozen=True)
class NoFit:
    """Why the data carry no fit."""

    reason: str


def fit_usl(points: Iterable[tuple[float, float]]) -> Fit | NoFit:
    """The law's fit to pairs of users and rate, one for each run; docs/analysis.md says when there is none.

    X(N) = λN / (1 + σ(N−1) + κN(N−1)), with its peak at √((1−σ)/κ). Source: N. J. Gunther, Guerrilla Capacity
    Planning, Springer 2007. Raises ValueError for less than 1 user or a rate that is not above 0.
    """
    ordered = tuple(sorted((float(users), float(rate)) for users, rate in points))
    if not all(users >= 1 and rate > 0 for users, rate in ordered):
        raise ValueError("the law takes 1 user or more, and rates above 0")
    return _fit(ordered)


@lru_cache(maxsize=512)
def _fit(points: Points) -> Fit | NoFit:
    if reason := few_points([users for users, _ in points]):
        return NoFit(reason)
    users, rates = np.array(points).T
    found = without_traces(exact_fit(users, rates), users[-1])
    fitted = found[0] * users / slowdown(users, found[1], found[2])
    logs, misses = np.log(rates), np.log(rates / fitted)
    if reason := flat(users, logs, misses):
        return NoFit(reason)
    r_squared = 1 - float(misses @ misses) / float(((logs - logs.mean()) ** 2).sum())
    if reason := poor(misses, r_squared):
        return NoFit(reason)
    drawn = without_traces(bootstrapped(users, rates, fitted), users[-1])
    lambda_, sigma, kappa = (_estimate(value, drawn[:, at]) for at, value in enumerate(found))
    if reason := undetermined(sigma.high - sigma.low, lambda_.high / lambda_.low):
        return NoFit(reason)
    levels = (float(users[0]), float(users[-1]))
    peak, no_peak = _peak(found, drawn, kappa, levels)
    return Fit(lambda_, sigma, kappa, peak, no_peak, r_squared, levels, len(points))


def _estimate(value: float, drawn: Floats) -> Estimate:
    low, high = np.percentile(drawn, INTERVAL)
    return Estimate(float(value), min(float(value), float(low)), max(float(value), float(high)))


def _peak(
    found: Floats, drawn: Floats, kappa: Estimate, levels: tuple[float, float]
) -> tuple[Peak | None, str]:
    """The curve's peak, or why there is none to tell."""
    lowest, highest = levels
    if kappa.low <= 0:
        return None, "κ may be 0: the curve need not fall again"
    where = _peak_users(found[1], found[2])
    if where > FAR_TIMES * highest:
        return None, f"beyond twice the {highest:g} users tested: an extrapolation"
    users = _estimate(where, np.array([_peak_users(sigma, kappa) for _, sigma, kappa in drawn if kappa > 0]))
    rate = found[0] * where / (1 + found[1] * (where - 1) + found[2] * where * (where - 1))
    return Peak(users, float(rate), not lowest <= where <= highest), ""


def _peak_users(sigma: float, kappa: float) -> float:
    """At least 1: fewer users than one there are not."""
    return max(1.0, sqrt((1 - sigma) / kappa))
