"""When a curve of throughput against users carries no fit of the Universal Scalability Law."""

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from reports.format import digits
from reports.stats.usl_fit import Floats

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


def undetermined(sigma_width: float, lambda_times: float) -> str:
    """Why these levels do not tell the parameters apart; empty where they do."""
    if sigma_width > WIDEST_SIGMA:
        return f"the levels do not determine σ: its interval is {digits(sigma_width)} wide"
    if lambda_times > WIDEST_LAMBDA:
        return f"the levels do not determine λ: its interval spans a factor of {digits(lambda_times)}"
    return ""


def _chance(explained: float, by: int, left: float, freedom: int) -> float:
    """How often noise would explain so much: the upper tail of F; 1 where nothing varies."""
    if explained <= 0:
        return 1.0
    return float(fdtrc(by, freedom, explained / by / (left / freedom))) if left > 0 else 0.0
