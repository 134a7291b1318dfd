"""What repeats of one thing say of the machine, and how small a change gates on it could show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, expm1, log, log1p, sqrt
from statistics import stdev

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, nctdtrinc, ndtri, stdtrit

from reports.gates.evidence import fewest, of_ratio
from reports.gates.source import Counting, GateSource
from reports.stats.paired import LEAST_REPEATS, Mean, holm
from reports.stats.shares import LEVEL

MOST_FLIPS, SEED = 10_000, 1
Numbers = npt.NDArray[np.float64]
SURE = 0.95


@dataclass(frozen=True)
class Alike:
    """A column of one cell: the logarithms of its runs that count, in the order in which they were made."""

    cell: str
    column: str
    logs: tuple[float, ...]
    left_out: str = ""

    @cached_property
    def differences(self) -> Numbers:
        """Of neighbours: the second from the first, the fourth from the third, …"""
        logs: Numbers = np.array(self.logs)
        differences: Numbers = logs[1::2] - logs[:-1:2]
        return differences

    @property
    def pairs(self) -> int:
        """Of neighbours."""
        return len(self.differences)

    @property
    def spread(self) -> float:
        """The standard deviation of one run."""
        return stdev(self.logs)

    @property
    def of_a_pair(self) -> float:
        """The standard deviation of a pair's difference, which would be 0 without noise."""
        return sqrt(float((self.differences**2).mean()))

    @property
    def within(self) -> float:
        """The standard deviation of one run among its neighbours."""
        return self.of_a_pair / sqrt(2)

    @property
    def drift(self) -> float:
        """What runs have in common with their neighbours, and pairs are free of: the rest of the spread."""
        return sqrt(max(0.0, self.spread**2 - self.within**2))

    @property
    def doubt(self) -> float:
        """How many times as large the true spread of a pair may be: 95 % one-sided, by chi-squared."""
        return sqrt(self.pairs / float(chdtri(self.pairs, 0.95)))


def alike(source: GateSource, cells: Sequence[str], columns: Sequence[str]) -> list[Alike]:
    """Each column of each cell, of the runs that a gate on the column would count and that are above 0."""
    return [_alike(source, cell, column) for column in columns for cell in cells]


def _alike(source: GateSource, cell: str, column: str) -> Alike:
    found = Counting().counted(source.runs[cell], source.cells[cell], column)
    values = [value for run in found.runs if (value := run.value(column)) and value > 0]
    return Alike(cell, column, tuple(log(value) for value in values), found.said)


@dataclass(frozen=True)
class Alarms:
    """The shares of sign flips in which a gate would say fail: at any effect, or beyond the least one."""

    any_effect: float
    least_effect: float

    def __str__(self) -> str:
        return f"{100 * self.least_effect:.1f} ({100 * self.any_effect:.1f})"


def alarms(found: Sequence[Alike], least_effect: float) -> tuple[list[Alarms], Alarms]:
    """Of each cell when gated alone, and of any of them when gated together by Holm's method.

    Since both of a pair are alike, each difference might as well have had the other sign: all ways to choose
    the signs are gone through, or MOST_FLIPS of them. A flip is of the same pair in every cell, since what
    disturbed one cell may have disturbed the others too.
    """
    signs = _signs(max(one.pairs for one in found))
    judged = [_judged(one.differences * signs[:, : one.pairs], least_effect) for one in found]
    each = [_shares(chances <= LEVEL, beyond) for chances, beyond in judged]
    chances, beyond = (np.array(parts) for parts in zip(*judged, strict=True))
    adjusted = np.ones_like(chances)
    for flip in np.flatnonzero((chances <= LEVEL).any(axis=0)):
        adjusted[:, flip] = holm(chances[:, flip].tolist())
    broken = adjusted <= LEVEL
    return each, _shares(np.any(broken, axis=0), np.any(broken & beyond, axis=0))


def _shares(broken: npt.NDArray[np.bool_], beyond: npt.NDArray[np.bool_]) -> Alarms:
    return Alarms(float(broken.mean()), float((broken & beyond).mean()))


def _signs(pairs: int) -> Numbers:
    """Rows of 1 and -1, in each flip one for every pair."""
    if 2**pairs <= MOST_FLIPS:
        bits = np.arange(2**pairs)[:, np.newaxis] >> np.arange(pairs) & 1
    else:
        bits = np.random.default_rng(SEED).integers(0, 2, (MOST_FLIPS, pairs))
    signs: Numbers = (2 * bits - 1).astype(np.float64)
    return signs


def _judged(flipped: Numbers, least_effect: float) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Of each flip the chance of such evidence, and whether the estimate is beyond the least effect."""
    pairs = flipped.shape[1]
    middles = flipped.mean(axis=1)
    errors = flipped.std(axis=1, ddof=1) / sqrt(pairs)
    chances, beyond = np.ones(len(flipped)), np.zeros(len(flipped), bool)
    # The others are above LEVEL, adjusted or not, and need not be told apart.
    for flip in np.flatnonzero(middles > stdtrit(pairs - 1, 1 - LEVEL) * errors):
        logs = Mean(float(middles[flip]), float(errors[flip]), pairs - 1, pairs)
        evidence = of_ratio(logs, 1, 1 + least_effect, at_most=True)
        chances[flip], beyond[flip] = evidence.p_broken, evidence.beyond
    return chances, beyond


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

    The least effect is half of the change: nearer to it, it would decide the outcome.
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
