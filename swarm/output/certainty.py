"""When a measure phase under way shows for certain that a bound is broken, though it is looked at for ever.

A machine that is slow for some seconds is no broken bound. So all seconds together may have been unlucky by
as much as seconds that vary and are alike explain (`unlucky`), and the bound must be broken beyond that, by
what the requests themselves tell.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, sqrt

from scipy.special import ndtri

from reports.format import NS_PER_MS
from reports.gates.blocks import Seconds
from reports.gates.columns import PERCENTILES
from reports.gates.shares import LEAST_BLOCKS, Counts, Share
from reports.gates.thresholds import Threshold

CERTAIN = 0.001
"""How likely a threshold may stop a study that keeps its bound, all runs and looks together."""
LOOK_S = 5
"""From one look to the next; the first comes after so many seconds, or those of abort_after_s."""
ALIKE = 0.8
"""What is left of a second's own slowness, or its own failures, in the next one, at most."""
TIMES_VARY, FAILURES_VARY = 0.15, 1.0
"""How far seconds differ at most: the standard deviations of the logarithms of their times, and of the odds
that a request of theirs fails."""


def look_at(threshold: Threshold, elapsed_s: int) -> int:
    """Which look at a threshold is due after so many seconds of a phase, from 1 on; 0 before the first."""
    first_s = max(float(LOOK_S), threshold.abort_after_s or 0)
    return 1 + int((elapsed_s - first_s) // LOOK_S) if elapsed_s >= first_s else 0


def chance_of(look: int, runs: int) -> float:
    """What one look may spend of the chance to be wrong: those of all looks at so many runs add up to it."""
    return CERTAIN / runs / (look * (look + 1))


def unlucky(threshold: Threshold, seconds: int, chance: float) -> Threshold:
    """The same with the bound that so many seconds exceed only with this chance while its own is kept."""
    require, deviations = threshold.require, float(-ndtri(chance)) * sqrt(variance(seconds))
    if require.column in PERCENTILES:
        bound = require.bound * exp(TIMES_VARY * deviations)
    else:
        odds = require.bound * exp(FAILURES_VARY * deviations)
        bound = odds / (1 - require.bound + odds)
    # a fail takes more than what is tolerated, too
    stricter = replace(require, bound=max(bound, threshold.tolerated))
    return replace(threshold, require=stricter, least_effect=0.0)


def variance(seconds: int) -> float:
    """Of the mean of so many values of variance 1 whose neighbours are alike (AR(1))."""
    rest = 2 * ALIKE * (1 - ALIKE**seconds) / (1 - ALIKE)
    return (seconds * (1 + ALIKE) - rest) / (1 - ALIKE) / seconds**2


def is_certain(threshold: Threshold, seconds: Seconds, width_s: int, chance: float) -> bool:
    """Whether blocks of so many seconds each show it, at this chance of being wrong."""
    if len(seconds.blocks) < LEAST_BLOCKS:
        return False
    strict = unlucky(threshold, width_s * len(seconds.blocks), chance / 2).require
    if strict.column in PERCENTILES:
        name, percent = PERCENTILES[strict.column]
        allowed = 1 - percent / 100
        found = share_of(*seconds.beyond(name, strict.bound * NS_PER_MS), width_s)
    else:
        allowed, found = strict.bound, share_of(*seconds.failed(), width_s)
    return found.share > allowed and found.p_beyond(allowed, above=True) <= chance / 2


def share_of(hits: Counts, requests: Counts, width_s: int) -> Share:
    """The share of hits; what its blocks differ by beyond chance is as alike as it may be at most.

    How alike they are is not taken from them, as a verdict does: few blocks do not tell.
    """
    whole, count = float(requests.sum()), len(requests)
    share = float(hits.sum()) / max(1.0, whole)
    by_chance = share * (1 - share) / max(1.0, whole)
    if by_chance <= 0:
        return Share(share, whole, round(whole))
    errors = hits - share * requests
    beyond_chance = max(0.0, float(errors @ errors) * count / (count - 1) / whole**2 - by_chance)
    alike = count * variance(count * width_s) / variance(width_s)
    return Share(share, whole * by_chance / (by_chance + beyond_chance * alike), round(whole))
