"""How throughput grows with users: the Universal Scalability Law, where the data carry it.

Least squares give one exact fit, and many quick ones of the rates as they might have come out, drawn from
those that did: how far λ, σ and κ may be off. Residuals are differences of logs, which for small ones are
relative: what disturbs a run is a factor of its rate, so that in absolute ones the highest rates would drown
the lowest, and with them λ and σ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import fdtrc, ndtri

from reports.format import digits
from reports.stats.log_ratio import UPPER, errors_wide

FAR_TIMES = 2.0
"""The highest level: a peak beyond so many times it is not told."""
SAMPLES, SEED = 1_000, 7
PARAMETERS, LEAST_LEVELS, LEAST_RUNS = 3, 4, 5
"""With a run more than parameters, a curve through noise is as near to it as one through a law."""
CHANCE = 0.01
"""How seldom noise alone may pass each of the two tests that the throughput varies."""
LEAST_TIMES = 1.2
"""Of the levels' means, the highest over the lowest: a moment's trouble sets levels apart by some percent."""
LEAST_R_SQUARED, LARGEST_MISS = 0.8, 0.15
"""What the curve must explain of the logs' variance, and how far off its points it may be on average."""
WIDEST_SIGMA, WIDEST_LAMBDA = 0.5, 4.0
"""The intervals' width: of σ's range from 0 to 1, and λ's highest over its lowest."""
Floats = npt.NDArray[np.float64]
_FACES: tuple[Floats, ...] = (
    np.eye(3),
    np.array([[1.0, 0], [0, 1], [0, 0]]),
    np.array([[1.0, 0], [0, 0], [0, 1]]),
    np.array([[1.0, 0], [1, 0], [0, 1]]),
    np.array([[1.0], [0], [0]]),
    np.array([[1.0], [1], [0]]),
)
"""Where the best a, b, c of `quick_fits` may lie: inside, or where κ is 0, σ is 0 or 1, or both are held."""
_SLACK = 1e-9
TRACE = 1e-3
_INSIDE = 1e-6
"""How far from its bounds the exact fit starts, as its method asks."""


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
    explains. `levels` are the lowest and the highest users.
    """

    lambda_: Estimate
    sigma: Estimate
    kappa: Estimate
    peak: Peak | None
    no_peak: str
    r_squared: float
    levels: tuple[float, float]

    def rate_at(self, users: float) -> float:
        """The curve's rate at some users."""
        return float(self.lambda_.value * users / slowdown(users, self.sigma.value, self.kappa.value))


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
def _fit(points: tuple[tuple[float, float], ...]) -> Fit | NoFit:
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
    if (wide := sigma.high - sigma.low) > WIDEST_SIGMA:
        return NoFit(f"the levels do not determine σ: its interval is {digits(wide)} wide")
    if (times := lambda_.high / lambda_.low) > WIDEST_LAMBDA:
        return NoFit(f"the levels do not determine λ: its interval spans a factor of {digits(times)}")
    levels = (float(users[0]), float(users[-1]))
    peak, no_peak = _peak(found, drawn, kappa, levels)
    return Fit(lambda_, sigma, kappa, peak, no_peak, r_squared, levels)


def _estimate(value: float, drawn: Floats) -> Estimate:
    low, high = np.percentile(drawn, (100 - 100 * UPPER, 100 * UPPER))
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
        return None, f"beyond twice the {highest:g} users tested: extrapolated"
    users = _estimate(where, np.array([_peak_users(sigma, kappa) for _, sigma, kappa in drawn if kappa > 0]))
    rate = found[0] * where / slowdown(where, found[1], found[2])
    return Peak(users, float(rate), not lowest <= where <= highest), ""


def _peak_users(sigma: float, kappa: float) -> float:
    """At least 1: fewer users than one there are not."""
    return max(1.0, sqrt((1 - sigma) / kappa))


def bootstrapped(users: Floats, rates: Floats, fitted: Floats) -> Floats:
    """λ, σ and κ of many draws, shape (draws, 3); the same for the same data.

    Where every level has repeats, their relative differences from their level's mean are drawn; else what
    the fit leaves is. They are drawn from those of all levels, since a level alone has few. Few values vary
    less than what they come from, by √(1 − parameters / values), and make a normal interval too narrow, as
    Student's t says: both are made up for.
    """
    logs = np.log(rates)
    _, level, counts = np.unique(users, return_inverse=True, return_counts=True)
    repeated = counts.min() > 1
    middles = (np.bincount(level, logs) / counts)[level] if repeated else np.log(fitted)
    freedom = len(users) - (len(counts) if repeated else PARAMETERS)
    widened = np.sqrt(len(users) / freedom) * errors_wide(freedom) / ndtri(UPPER)
    left = (logs - middles) * widened
    draw = np.random.default_rng(SEED).integers(0, len(users), (SAMPLES, len(users)))
    return quick_fits(users, np.exp(middles + (left - left.mean())[draw]), users / fitted)


def few_points(users: Sequence[float]) -> str:
    """Why there are too few points to fit, one for each run; empty where there are enough."""
    levels = len(set(users))
    if levels < LEAST_LEVELS:
        return f"{levels} of the {LEAST_LEVELS} levels that it takes"
    if len(users) < LEAST_RUNS:
        return f"{len(users)} of the {LEAST_RUNS} runs that it takes; --repeats 3 would do"
    return ""


def flat(users: Floats, logs: Floats, misses: Floats) -> str:
    """Why the rates do not vary with the users; empty where they do. `logs` are theirs, `misses` the fit's.

    A constant rate is the law with σ = 1 and κ = 0, so that the fit must leave much less than it: an F-test.
    Where levels have repeats, they must also differ by more than those do: one-way analysis of variance.
    """
    whole, left = float(((logs - logs.mean()) ** 2).sum()), float(misses @ misses)
    chances = [_chance(whole - left, PARAMETERS - 1, left, len(logs) - PARAMETERS)]
    _, level, counts = np.unique(users, return_inverse=True, return_counts=True)
    means = np.bincount(level, logs) / counts
    if len(logs) > len(means):
        within = float(((logs - means[level]) ** 2).sum())
        chances.append(_chance(whole - within, len(means) - 1, within, len(logs) - len(means)))
    if max(chances) > CHANCE:
        said = (
            f"by {len(logs)} runs, the throughput cannot be told from one that does not vary with the users"
        )
        return f"{said} (F-test, {100 * CHANCE:g} %)"
    times = float(np.exp(means.max() - means.min()))
    if times < LEAST_TIMES:
        return f"the throughput varies by {digits(100 * times - 100)} %, too little to tell a curve"
    return ""


def poor(misses: Floats, r_squared: float) -> str:
    """Why the curve does not describe the points; empty where it does."""
    miss = float(np.sqrt(np.mean(misses**2)))
    if miss > LARGEST_MISS:
        said = f"the curve is {digits(100 * miss)} % off its points on average"
        return f"{said}, more than {100 * LARGEST_MISS:g} %"
    if r_squared < LEAST_R_SQUARED:
        said = f"the curve explains {digits(100 * r_squared)} % of the variation"
        return f"{said}, less than {100 * LEAST_R_SQUARED:g} %"
    return ""


def _chance(explained: float, by: int, left: float, freedom: int) -> float:
    """How often noise would explain so much: the upper tail of F; 1 where nothing varies."""
    if explained <= 0:
        return 1.0
    return float(fdtrc(by, freedom, explained / by / (left / freedom))) if left > 0 else 0.0


def slowdown(users: Any, sigma: float, kappa: float) -> Any:
    """1 + σ(N−1) + κN(N−1): how many times less N users (an array, too) have than N times the rate of one."""
    return 1 + sigma * (users - 1) + kappa * users * (users - 1)


def exact_fit(users: Floats, rates: Floats) -> Floats:
    """λ, σ and κ with the least sum of squared differences of logs; σ in 0 to 1, κ at least 0."""
    begin = quick_fits(users, rates[None, :], users / rates)[0]
    logs = np.log(rates / users)

    def residuals(at: Floats) -> Floats:
        return np.asarray(at[0] - np.log(slowdown(users, at[1], at[2])) - logs)

    def slopes(at: Floats) -> Floats:
        by = slowdown(users, at[1], at[2])
        return np.column_stack([np.ones_like(users), (1 - users) / by, users * (1 - users) / by])

    found = least_squares(
        residuals,
        [np.log(begin[0]), np.clip(begin[1], _INSIDE, 1 - _INSIDE), max(begin[2], _INSIDE**2)],
        slopes,
        bounds=([-np.inf, 0, 0], [np.inf, 1, np.inf]),
        x_scale="jac",
    )
    return np.array([np.exp(found.x[0]), *found.x[1:]])


def quick_fits(users: Floats, samples: Floats, expected: Floats) -> Floats:
    """λ, σ and κ of each row of `samples`, rates at the same users; shape (samples, 3).

    N/X = a + b(N−1) + cN(N−1) is linear, with λ = 1/a, σ = b/a, κ = c/a (Gunther's own way). `expected` is
    N/X as it should be; residuals are relative to it. The bounds are linear too, so that the best of their
    faces, tried one by one, is the best of all.
    """
    columns = np.column_stack([np.ones_like(users), users - 1, users * (users - 1)]) / expected[:, None]
    wanted = (users / samples / expected).T
    tried = [face @ (np.linalg.pinv(columns @ face) @ wanted) for face in _FACES]
    misses = [
        np.where(_allowed(found), ((columns @ found - wanted) ** 2).sum(axis=0), np.inf) for found in tried
    ]
    best = np.argmin(misses, axis=0)
    a, b, c = np.array(tried)[best, :, np.arange(len(samples))].T
    return np.column_stack([1 / a, np.clip(b / a, 0, 1), np.maximum(c / a, 0)])


def without_traces(found: Floats, highest: float) -> Floats:
    """The same, shape (…, 3), with 0 for a σ or κ that takes less than 0.1 % at the highest level."""
    taken = found * np.array([np.inf, highest - 1, highest * (highest - 1)])
    result: Floats = np.where(taken < TRACE, 0.0, found)
    return result


def _allowed(found: Floats) -> npt.NDArray[np.bool_]:
    a, b, c = found
    slack = _SLACK * np.abs(a)
    result: npt.NDArray[np.bool_] = (a > 0) & (b >= -slack) & (b <= a + slack) & (c >= -slack)
    return result
