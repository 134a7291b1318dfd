"""How small a change so many pairs of runs would show, and how many pairs a change takes."""

from collections.abc import Callable
from math import ceil, expm1, log1p, sqrt

from scipy.special import nctdtrinc, ndtri, stdtrit

from reports.gates.claim import LEAST_REPEATS
from reports.gates.evidence import LEVEL, fewest

SURE = 0.95


def detectable(spread: float, pairs: int, cells: int, power: float, least_effect: float) -> float:
    """The smallest slowdown, 0.1 being 10 %, that is judged as fail in such a part of all cases.

    `spread` is the standard deviation of the log ratio of one pair, `cells` how many are gated together: the
    level is what Holm's method leaves to the first of them. Student's t of a mean that changed is noncentral.
    The estimate must also be beyond the least effect.
    """
    error = spread / sqrt(pairs)
    critical = stdtrit(pairs - 1, 1 - LEVEL / cells)
    shown = float(nctdtrinc(pairs - 1, 1 - power, critical)) * error
    beyond = log1p(least_effect) + float(ndtri(power)) * error
    return expm1(max(shown, beyond))


def pairs_for(change: float, spread: float, cells: int) -> int | None:
    """The fewest pairs that show a change where they are to be SURE; None where it takes too many.

    The least effect is half of the change: nearer to it, it would be in the way.
    """
    return _fewest_pairs(lambda pairs: detectable(spread, pairs, cells, SURE, change / 2) <= change)


def passable(spread: float, pairs: int) -> float:
    """The least effect, in whole percent, with which what did not change passes in SURE of all cases."""
    critical = stdtrit(pairs - 1, 1 - LEVEL)
    effect = expm1(float(nctdtrinc(pairs - 1, 1 - SURE, critical)) * spread / sqrt(pairs))
    return ceil(round(100 * effect, 6)) / 100


def pairs_to_pass(spread: float, least_effect: float) -> int | None:
    """The fewest pairs with which what did not change passes in SURE of all cases; None where too many."""
    return _fewest_pairs(lambda pairs: passable(spread, pairs) <= least_effect)


def _fewest_pairs(enough: Callable[[int], bool]) -> int | None:
    more = fewest(lambda more: enough(LEAST_REPEATS - 1 + more))
    return None if more is None else LEAST_REPEATS - 1 + more
