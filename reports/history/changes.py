"""Change points: where the level of a series of studies changed, by how much, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.history.levels import Levels, difference, fitted, parts_of, squares_left, tails_of
from reports.history.noise import MAD_TO_SD, Floats, likeness, outliers, times_wider
from reports.stats.log_ratio import LogRatio

LEAST = 3
"""Studies on each side: a level that fewer hold is an outlier, or not yet known."""
FALSE = 0.05
"""How likely any change of a whole history is a false one."""
LEAST_EFFECT = 1.02
"""As how many times: what is less is not told."""
WEAK = 3.0
"""Times σ² ln n: what a level must explain to be tried at all."""
LIKELY = 5.0
"""Natural logarithm of a likelihood ratio: places less likely by more are left out of a change's range."""

CLEARLY = 10.0
"""By how much a line's BIC must be below that of steps: very strong evidence (A. E. Raftery, Bayesian model
selection in social research, Sociological Methodology 25, 1995).
"""


@dataclass(frozen=True)
class ChangePoint:
    """The level from study `at` on over the level before it; studies are counted within the series.

    It happened at one of `first` to `last`. `p` is its chance where nothing changed, multiplied by the number
    of places that were tried in the whole history: at most FALSE.
    """

    at: int
    first: int
    last: int
    ratio: LogRatio
    p: float


@dataclass(frozen=True)
class Course:
    """What became of one series: its changes in order, and which of its studies are outliers.

    `drift` is the ratio of end to beginning where a straight line tells more than steps do, and then there
    are no changes.
    """

    changes: tuple[ChangePoint, ...]
    outlying: frozenset[int]
    drift: float | None = None

    def levels(self, count: int) -> list[tuple[int, int]]:
        """The stretches between changes as begin and end, of so many studies."""
        cuts = [0, *(change.at for change in self.changes), count]
        return list(pairwise(cuts))


class _Asked(NamedTuple):
    """What a change must withstand: `tried` places of the whole history, the least effect, the chance of any
    false one; how alike studies are, and how far off they are by themselves, once that is known.
    """

    tried: int
    least: float
    false: float
    ties: Floats
    tails: Floats | None = None


def courses(
    alike: Sequence[Sequence[Floats]], least_effect: float = LEAST_EFFECT, false: float = FALSE
) -> list[list[Course]]:
    """The course of each series, which come in groups of those that vary alike, such as one measure's.

    A series is the logarithms of the figures of studies in order of time. Levels are proposed by optimal
    partitioning (B. Jackson et al., IEEE Signal Processing Letters 12, 2005; R. Killick et al., PELT, JASA
    107, 2012) with a weak penalty. Then the least sure change is taken out, and the others are judged anew,
    until each is surely one: as in Hunter (M. Fleming et al., ICPE 2023), by Student's t of the levels on
    both sides, since permutations of a few studies have no small p-values. Bonferroni's bound over all places
    of all series keeps the chance of any false change below `false`. The variance of a level's mean holds
    how alike neighbouring studies are (noise.py), without which a machine's good and bad days are changes.
    What is left must also be rarer than the group's own tails make it (levels.py).
    """
    tried = sum(max(0, len(values) - 2 * LEAST + 1) for group in alike for values in group)
    return [_courses(group, tried, least_effect, false) for group in alike]


def _courses(group: Sequence[Floats], tried: int, least: float, false: float) -> list[Course]:
    """Those of a group; the first look, by t alone, is what tells how far off its studies are."""
    out = [outliers(values) for values in group]
    kept = [values[~off] for values, off in zip(group, out, strict=True)]
    asked = _Asked(tried, least, false, likeness(kept))
    first = [_surest(values, _proposed(values, asked.ties), asked) for values in kept]
    asked = asked._replace(tails=tails_of(group, out, first))
    return [_course(*one, asked) for one in zip(kept, out, first, strict=True)]


def _course(values: Floats, out: NDArray[np.bool_], first: tuple[int, ...], asked: _Asked) -> Course:
    """The course of one series, given its values but the outliers, which these are, and the first look."""
    outlying = frozenset(int(at) for at in np.flatnonzero(out))
    cuts = _surest(values, first, asked)
    if not cuts:
        return Course((), outlying)
    places = np.flatnonzero(~out)
    if (drift := _drift(values, cuts)) is not None:
        return Course((), outlying, drift)
    fit = fitted(values, cuts, asked.ties)
    told = [_change(values, fit, at, asked, places) for at in range(1, len(cuts) + 1)]
    return Course(tuple(told), outlying)


def _proposed(values: Floats, ties: Floats) -> tuple[int, ...]:
    """Where levels may begin: the fewest squares and WEAK σ² ln n for each level, no level below LEAST."""
    count = len(values)
    if count < 2 * LEAST:
        return ()
    steps = np.diff(values)
    # Figures of few digits have a median of 0, and would be proposed a level at every third study.
    sigma = max(MAD_TO_SD * float(np.median(np.abs(steps))), float(steps.std()) / 2) / sqrt(2)
    sigma /= sqrt(max(0.05, 1 - (float(ties[0]) if len(ties) else 0.0)))
    penalty = WEAK * sigma**2 * log(count) * times_wider(count, ties)
    sums = np.concatenate(([0.0], np.cumsum(values - values.mean())))
    ends = np.arange(count + 1, dtype=float)
    best, before = np.full(count + 1, inf), np.zeros(count + 1, dtype=int)
    best[0] = 0.0
    # The squares around a mean are the sum of squares, the same for all partitions, less sum² over count.
    for end in range(LEAST, count + 1):
        begins = slice(0, end - LEAST + 1)
        explained = (sums[end] - sums[begins]) ** 2 / (end - ends[begins])
        costs = best[begins] - explained
        before[end] = int(np.argmin(costs))
        best[end] = costs[before[end]] + penalty
    cuts, end = [], count
    while (end := int(before[end])) > 0:
        cuts.append(end)
    return tuple(reversed(cuts))


def _surest(values: Floats, cuts: tuple[int, ...], asked: _Asked) -> tuple[int, ...]:
    """The changes that are left when the least sure is taken out, and then the next, until all are sure.

    One below the least effect goes too, and one that too few studies hold. Those that are left move to their
    likeliest places.
    """
    while cuts:
        fit = fitted(values, cuts, asked.ties)
        tests = [difference(fit, at, asked.ties, asked.tails) for at in range(1, len(cuts) + 1)]
        sure = [p * asked.tried <= asked.false for _, p in tests]
        small = [
            abs(log(ratio.ratio)) < log(asked.least) or not _held(values, fit, at)
            for at, (ratio, _) in enumerate(tests, 1)
        ]
        worst = max(range(len(cuts)), key=lambda at: (not sure[at], small[at], tests[at][1]))
        if sure[worst] and not small[worst]:
            moved = _moved(values, cuts)
            if moved == cuts:
                break
            cuts = moved
        else:
            cuts = cuts[:worst] + cuts[worst + 1 :]
    return cuts


def _held(values: Floats, fit: Levels, at: int) -> bool:
    """Whether LEAST studies of each level are on its side of the middle: two can move a mean of three."""
    middle = (fit.means[at - 1] + fit.means[at]) / 2
    sides = [values[fit.cuts[at + side - 1] : fit.cuts[at + side]] for side in (0, 1)]
    beyond = [
        int(np.sum((side > middle) == (mean > middle)))
        for side, mean in zip(sides, fit.means[at - 1 : at + 1], strict=True)
    ]
    return min(beyond) >= LEAST


def _moved(values: Floats, cuts: tuple[int, ...]) -> tuple[int, ...]:
    """The first change that is not where its two levels fit best is put there; the same where all are."""
    edges = [0, *cuts, len(values)]
    for at in range(1, len(edges) - 1):
        squares = _squares(values[edges[at - 1] : edges[at + 1]])
        best = edges[at - 1] + LEAST + int(np.argmin(squares))
        if squares.min() < squares[edges[at] - edges[at - 1] - LEAST] - 1e-12:
            return (*cuts[: at - 1], best, *cuts[at:])
    return cuts


def _squares(values: Floats) -> Floats:
    """What two levels leave, the second from LEAST on, from LEAST + 1 on, and so on."""
    count = len(values)
    sums = np.cumsum(values - values.mean())[LEAST - 1 : count - LEAST]
    sizes = np.arange(LEAST, count - LEAST + 1)
    whole = float(np.sum((values - values.mean()) ** 2))
    found: Floats = whole - sums**2 * (1 / sizes + 1 / (count - sizes))
    return found


def _change(values: Floats, fit: Levels, at: int, asked: _Asked, places: NDArray[np.int64]) -> ChangePoint:
    """One change, with the range of places that are as likely within LIKELY (D. O. Siegmund, Confidence sets
    in change-point problems, International Statistical Review 56, 1988).
    """
    begin, end = fit.cuts[at - 1], fit.cuts[at + 1]
    squares = _squares(values[begin:end])
    near = 2 * LIKELY * fit.spread_at(at)[0] * times_wider(2 * LEAST, asked.ties)
    likely = np.flatnonzero(squares - squares.min() <= near) + begin + LEAST
    ratio, p = difference(fit, at, asked.ties, asked.tails)
    # An outlier after the last study on the old level may be the first of the new.
    first, last = int(places[likely[0] - 1]) + 1, int(places[likely[-1]])
    return ChangePoint(int(places[fit.cuts[at]]), first, last, ratio, min(1.0, p * asked.tried))


def _drift(values: Floats, cuts: tuple[int, ...]) -> float | None:
    """End over beginning of a straight line, where it leaves less than steps by BIC; None where steps do."""
    count = len(values)
    places = np.arange(count, dtype=float)
    slope, start = np.polyfit(places, values, 1)
    line = float(np.sum((values - start - slope * places) ** 2))
    parts = parts_of(values, cuts)
    steps = squares_left(parts)
    if not line or not steps:
        return None
    gained = count * log(steps / line) + (2 * len(parts) - 3) * log(count)
    return exp(float(slope) * (count - 1)) if gained > CLEARLY else None
