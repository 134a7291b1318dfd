"""Levels of a series between changes: their means, what is left around them, how sure two differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, stdtr

from reports.history.noise import Floats, times_wider
from reports.stats.log_ratio import LogRatio, resolved

NEAR = 15
"""Studies on each side of a change that tell how much studies varied at its time."""
MORE = 1.3
"""As many times the variance of all is more than chance has it among those."""
FAR = 1e6
"""Standard deviations: how far off an outlier is taken to be."""


@dataclass(frozen=True)
class Levels:
    """Where levels begin and end, their means, and how far each study is from its own.

    `variance` is that of one study around its level, and `freedom` how many studies' worth tell it.
    """

    cuts: tuple[int, ...]
    means: Floats
    off: Floats
    variance: float
    freedom: float

    @property
    def varies(self) -> float:
        """The standard deviation of what is left."""
        return sqrt(float(np.mean(self.off**2)))

    def spread_at(self, at: int) -> tuple[float, float]:
        """Variance and freedom for one change: of the studies near it, where they vary more than chance has
        it, else of all.
        """
        near = self.off[max(0, self.cuts[at] - NEAR) : self.cuts[at] + NEAR]
        times = float(np.mean(near**2)) / self.varies**2 if self.varies else 1.0
        if times <= MORE:
            return self.variance, self.freedom
        return self.variance * times, max(1.0, self.freedom * len(near) / len(self.off))


def fitted(values: Floats, cuts: tuple[int, ...], ties: Floats) -> Levels:
    """The levels, and the variance of one study around its level as far as levels leave it.

    A level and its place are each a parameter. A mean follows its values, all the more where these are
    alike: Σ (m − times_wider(m)) is what is left of the count. The freedom is less by 1 + 2 Σ r_j² (M. S.
    Bartlett, On the theoretical specification of the sampling properties of autocorrelated time series, JRSS
    Supplement 8, 1946).
    """
    parts = parts_of(values, cuts)
    left = sum(len(part) - min(times_wider(len(part), ties), len(part) - 1.0) for part in parts)
    freedom = max(1.0, (len(values) - 2 * len(parts) + 1) / (1 + 2 * float(np.sum(ties**2))))
    means = np.array([part.mean() for part in parts])
    off = np.concatenate([part - part.mean() for part in parts])
    return Levels((0, *cuts, len(values)), means, off, squares_left(parts) / left, freedom)


def parts_of(values: Floats, cuts: tuple[int, ...]) -> list[Floats]:
    """The values of each level."""
    return [values[begin:end] for begin, end in pairwise((0, *cuts, len(values)))]


def squares_left(parts: Sequence[Floats]) -> float:
    """The squares around each part's mean."""
    return sum(float(np.sum((part - part.mean()) ** 2)) for part in parts)


def difference(fit: Levels, at: int, ties: Floats, tails: Floats | None = None) -> tuple[LogRatio, float]:
    """The ratio of a level to the one before it, and how likely it is where they are one.

    By Student's t, with the variance at that time; and where `tails` are known, no less than by them.
    """
    before, after = (fit.cuts[at + side] - fit.cuts[at + side - 1] for side in (0, 1))
    wide = sum(times_wider(count, ties) / count for count in (before, after))
    middle = float(fit.means[at] - fit.means[at - 1])
    variance, freedom = fit.spread_at(at)
    error = resolved(sqrt(variance * wide), freedom)
    p = 2 * float(stdtr(freedom, -abs(middle) / error))
    if tails is not None:
        p = max(p, *(_by_tails(fit, at, side, ties, tails) for side in (0, 1)))
    return LogRatio(exp(middle), min(before, after), error, freedom), p


def _by_tails(fit: Levels, at: int, side: int, ties: Floats, tails: Floats) -> float:
    """How likely so many studies of one level are so near the other one, by how far off studies are at all.

    A study counts where it is beyond the middle of both levels. Where noise has long tails, three such in a
    row are not rare, and t, which knows no tails, takes them for a level. Binomial, with as many studies as
    those that follow each other are worth.
    """
    count = fit.cuts[at + side] - fit.cuts[at + side - 1]
    own, other = fit.means[at - 1 + side], fit.means[at - side]
    towards = 1.0 if own > other else -1.0
    half = abs(own - other) / 2
    beyond = int(np.sum(towards * fit.off[fit.cuts[at + side - 1] : fit.cuts[at + side]] > -half))
    share = (1 + int(np.sum(towards * tails * fit.varies > half))) / (1 + len(tails))
    wider = times_wider(count, ties)
    return float(betainc(beyond / wider, (count - beyond) / wider + 1, share)) if beyond else 1.0


def tails_of(
    group: Sequence[Floats], out: Sequence[NDArray[np.bool_]], cuts: Sequence[tuple[int, ...]]
) -> Floats:
    """How far off its level each study of a group is, in standard deviations of its series; outliers too.

    `cuts` are counted without the outliers `out`, which are farther than any other.
    """
    found = [np.zeros(0)]
    for values, off, of in zip(group, out, cuts, strict=True):
        parts = parts_of(values[~off], of)
        left = np.concatenate([part - np.mean(part) for part in parts if len(part)] or found[:1])
        found.append(left / np.sqrt(np.mean(left**2)) if np.any(left) else left)
        found.append(np.copysign(FAR, values[off] - np.median(values[~off])) if off.any() else found[0])
    return np.concatenate(found)
