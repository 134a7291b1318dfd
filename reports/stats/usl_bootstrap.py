"""How far λ, σ and κ may be off: the fits of rates as they might have come out, drawn from those that did."""

import numpy as np
from scipy.special import ndtri, stdtrit

from reports.stats.usl_doubt import PARAMETERS
from reports.stats.usl_fit import Floats, quick_fits

SAMPLES, SEED = 1_000, 7
UPPER = 0.975
"""Where a 95 % interval ends."""


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
    widened = np.sqrt(len(users) / freedom) * stdtrit(freedom, UPPER) / ndtri(UPPER)
    left = (logs - middles) * widened
    draw = np.random.default_rng(SEED).integers(0, len(users), (SAMPLES, len(users)))
    return quick_fits(users, np.exp(middles + (left - left.mean())[draw]), users / fitted)
