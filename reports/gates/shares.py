"""How sure a share of requests is, though neighbours in time are alike: a bad second has many bad ones."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, stdtrit

from reports.analysis.log_ratio import CONFIDENCE
from reports.gates.evidence import LEVEL

LEAST_BLOCKS = 5
"""Seconds with results, of all runs together, below which nothing is known of how they vary."""
FEWEST_WIDE = 10
"""Blocks that must be left where neighbours are put together."""
Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """A share that was estimated; `effective` are the independent requests that would tell as much."""

    share: float
    effective: float
    requests: int

    def p_above(self, allowed: float) -> float:
        """How likely a share so high is where the true one is `allowed`: exact binomial tail."""
        hits = self.share * self.effective
        return float(betainc(hits, self.effective - hits + 1, allowed)) if hits > 0 else 1.0

    def p_below(self, allowed: float) -> float:
        """How likely a share so low is where the true one is `allowed`."""
        hits = self.share * self.effective
        if hits >= self.effective:
            return 1.0
        return float(betainc(self.effective - hits, hits + 1, 1 - allowed))

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %: Clopper and Pearson's, of the effective requests."""
        hits, whole = self.share * self.effective, self.effective
        low = float(betaincinv(hits, whole - hits + 1, LEVEL)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, whole - hits, 1 - LEVEL)) if hits < whole else 1.0
        return low, high


def share_of(hits: Counts, requests: Counts, runs: npt.NDArray[np.int64]) -> Share:
    """The share of hits among requests, counted second by second; `runs` says of which run each second is.

    The variance is that of seconds, of longer and longer blocks of them, and of whole runs, the largest of
    these; each but the runs' with Student's t for how few blocks there are. Sources: E. L. Korn and
    B. I. Graubard, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data, Survey Methodology 24 (1998), for effective requests and the exact tail;
    H. Flyvbjerg and H. G. Petersen, Error estimates on averages of correlated data, Journal of Chemical
    Physics 91 (1989), for the blocks.
    """
    whole = float(requests.sum())
    share = float(hits.sum()) / whole
    chance = share * (1 - share) / whole
    errors = hits - share * requests
    effects = (
        [1.0] if chance <= 0 else [max(1.0, found / chance) for found in _variances(errors, runs, whole)]
    )
    effective = whole / max(effects)
    return Share(share, effective, round(whole))


def _variances(errors: Counts, runs: npt.NDArray[np.int64], whole: float) -> list[float]:
    """Of the share: by blocks of 1, 2, 4, … seconds within their runs, and by runs."""
    starts = np.flatnonzero(np.diff(runs, prepend=runs[0] - 1))
    lengths = np.diff(np.append(starts, len(runs)))
    within = np.arange(len(runs)) - np.repeat(starts, lengths)
    found, width = [], 1
    while True:
        keys = runs * (len(runs) + 1) + within // width
        _, which = np.unique(keys, return_inverse=True)
        sums = np.bincount(which, weights=errors).astype(np.float64)
        if width > 1 and len(sums) < FEWEST_WIDE:
            break
        found.append(_of_blocks(sums, whole) * _few(len(sums)))
        if width > max(lengths):
            break
        width *= 2
    sums = np.add.reduceat(errors, starts).astype(np.float64)
    return [*found, _of_blocks(sums, whole)] if len(sums) > 1 else found


def _of_blocks(sums: Counts, whole: float) -> float:
    count = len(sums)
    return float(count / (count - 1) * (sums**2).sum()) / whole**2 if count > 1 else 0.0


def _few(count: int) -> float:
    """By how much more an estimate from so few blocks may be off than one from many."""
    return (float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) / 1.96) ** 2 if count > 1 else 1.0
