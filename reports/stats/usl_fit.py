"""The least squares behind the Universal Scalability Law: one exact fit, and many quick ones of its levels.

Residuals are differences of logs, which for small ones are relative: what disturbs a run is a factor of its
rate, so that in absolute ones the highest rates would drown the lowest, and with them λ and σ.
"""

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

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


def slowdown(users: Floats, sigma: float, kappa: float) -> Floats:
    """By how many times N users have less than N times the rate of one: 1 + σ(N−1) + κN(N−1)."""
    result: Floats = 1 + sigma * (users - 1) + kappa * users * (users - 1)
    return result


def exact_fit(users: Floats, rates: Floats) -> Floats:
    """λ, σ and κ with the least sum of squared differences of logs; σ in 0 to 1, κ at least 0."""
    begin = quick_fits(users, rates[None, :], users / rates)[0]
    logs = np.log(rates / users)

    def residuals(at: Floats) -> Floats:
        result: Floats = at[0] - np.log(slowdown(users, at[1], at[2])) - logs
        return result

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
