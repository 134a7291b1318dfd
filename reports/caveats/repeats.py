"""Which caveats repeats of a cell deserve that differ by more than their own seconds explain.

What makes them differ is in no interval of their mean: a server that still compiled in the first one, or
another program beside some of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from reports.caveat import Caveat, caveat, without_consequences
from reports.caveats.client import LEAST_OTHERS_CORES
from reports.format import digits, listed, milliseconds
from reports.ledger.ledger import Tag
from reports.summary.blocks import RunBlocks
from reports.summary.slices import LEAST_KEPT, Floats, sliced
from reports.summary.summary import Summary

LEAST_DIFFERENCE = log(1.25)
"""A quarter: good repeats vary by 1 to 5 %, so that five of them hardly ever span so much."""
MOST_ALIKE = 0.85
"""The correlation of neighbouring seconds that is allowed for, as in `change.py`."""
POINTS = (5, 8, 15, 30, 60)
LIMITS = (12.9, 10.1, 6.9, 4.9, 4.0)
"""What the greatest difference of two to five runs of so many slices exceeds, in its standard errors, in 1 %
of studies without any: simulated with neighbours correlated by 0 to 0.85, a skewed law included.
"""
KNOWN_CAUSE = 0.5
"""Of these limits, where other processes are known to have had the cores of some repeats alone."""
LEAST_AGREEING = 2
"""Repeats that must agree before the one that does not is called the odd one."""


@dataclass(frozen=True, eq=False)
class RepeatLevel:
    """The log mean latency of a run's slices in order."""

    run: Summary
    logs: Floats

    @property
    def mean(self) -> float:
        """The log of a latency in ns."""
        return float(self.logs.mean())

    @property
    def ms(self) -> str:
        """In milliseconds."""
        return f"{milliseconds(exp(self.mean) / 1e6)} ms"

    @property
    def others(self) -> float:
        """Cores that other processes took; 0 where that is not known."""
        return self.run.others_cpu.cores if self.run.others_cpu else 0.0

    @property
    def beside_others(self) -> bool:
        """Whether those were many of full cores."""
        return any(doubt.code == "others-cpu" for doubt in self.run.caveats)


def compare_repeats(runs: Sequence[Summary], blocks: Mapping[Tag, RunBlocks]) -> list[Summary]:
    """A study's runs in their order, with the caveats that the repeats of each cell bring upon each other."""
    cells: dict[str, list[RepeatLevel]] = {}
    for run in runs:
        # A queue under open-loop load near the server's capacity wanders for longer than a run lasts.
        if run.status == "done" and run.closed and not run.tainted:
            logs = _logs(blocks[run.cell, run.repeat])
            if len(logs) >= LEAST_KEPT:
                cells.setdefault(run.cell, []).append(RepeatLevel(run, logs))
    said = {id(run): found for levels in cells.values() for run, found in _find_doubts(levels)}
    return [
        replace(run, caveats=without_consequences([*run.caveats, *said.get(id(run), ())])) for run in runs
    ]


def _logs(blocks: RunBlocks) -> Floats:
    seconds = [(at, [found.histogram("latency")]) for at, found in blocks.by_second.items()]
    return np.array([one.log_ns for one in sliced(seconds)])


def _find_doubts(levels: Sequence[RepeatLevel]) -> list[tuple[Summary, tuple[Caveat, ...]]]:
    """The runs of a cell that are doubted: those that were slower beside other processes where the rest
    agree; or the first where it was slower and all others agree; else all.
    """
    least = min(one.others for one in levels)
    loud = [one for one in levels if one.beside_others and one.others - least >= LEAST_OTHERS_CORES]
    quiet_most = max(one.mean for one in levels if one not in loud)
    loud = [one for one in loud if one.mean > quiet_most]
    quiet = [one for one in levels if one not in loud]
    if loud and levels_differ(levels, KNOWN_CAUSE) and not levels_differ(quiet):
        text = f"it took {{}} on average beside other processes ({{}}), without them {_list_levels(quiet)}"
        return [(one.run, (caveat("disturbed", text.format(one.ms, one.run.others_cpu)),)) for one in loud]
    if not levels_differ(levels):
        return []
    first, *others = sorted(levels, key=lambda one: one.run.repeat)
    means = [one.mean for one in others]
    gap = first.mean - max(means)
    if (
        len(others) >= LEAST_AGREEING
        and not levels_differ(others)
        and gap > max(LEAST_DIFFERENCE, np.ptp(means))
    ):
        times = digits(exp(first.mean - float(np.mean(means))))
        took = f"repeat {first.run.repeat} took {first.ms} on average, later ones {_list_levels(others)}"
        text = f"{took}, which agree: {times} times as long, so it was still warming up"
        return [(first.run, (caveat("warming-up", text),))]
    times = digits(exp(max(one.mean for one in levels) - min(one.mean for one in levels)))
    text = f"repeats took {_list_levels([first, *others])} on average: up to {times} times as long"
    return [(one.run, (caveat("repeats-differ", text),)) for one in levels]


def _list_levels(levels: Sequence[RepeatLevel]) -> str:
    return listed([one.ms for one in levels])


def levels_differ(levels: Sequence[RepeatLevel], errors: float = 1.0) -> bool:
    """Whether some run's mean latency differs from another's by a quarter, and by more than seconds explain.

    The error of a mean is that of its slices, which all runs have in common, widened by how alike neighbours
    are (an autoregression of the first order, whose estimate is too low by (1 + 4r) / n). Source: F. W.
    Zwiers and H. von Storch, Taking serial correlation into account in tests of the mean, Journal of Climate
    8 (1995). `errors`: the part of LIMITS that is asked for.
    """
    if len(levels) < 2:
        return False
    low, high = (of(levels, key=lambda one: one.mean) for of in (min, max))
    difference = high.mean - low.mean
    shortest = min(len(one.logs) for one in levels)
    around = [one.logs - one.logs.mean() for one in levels]
    squares = sum(float(each @ each) for each in around)
    alike = sum(float(each[1:] @ each[:-1]) for each in around) / squares if squares else 0.0
    alike = min(max(alike + (1 + 4 * max(alike, 0.0)) / shortest, 0.0), MOST_ALIKE)
    variance = squares / sum(len(each) - 1 for each in around) * (1 + alike) / (1 - alike)
    error = sqrt(variance * (1 / len(low.logs) + 1 / len(high.logs)))
    return difference >= max(LEAST_DIFFERENCE, errors * float(np.interp(shortest, POINTS, LIMITS)) * error)
