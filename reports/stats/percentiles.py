"""What the repeats of a cell come to, with a 95 % interval: pooled percentiles, and means over runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from statistics import median

from reports.format import NS_PER_MS, Form, digits, told_digits, with_interval
from reports.histogram.buckets import percentiles_ns
from reports.histogram.percentiles import least_results, told_percentiles_ns
from reports.stats.paired import geometric_mean, mean_of_logs
from reports.stats.repeats import Runs, Value, resting_on
from reports.stats.shares import LEAST_BLOCKS, share_of
from reports.study.study import Study
from reports.summary.blocks import BlockSeries, RunBlocks
from reports.summary.summary import LatencyAt, Summary

NAME = "latency"
"""The histogram that pooled percentiles are of."""
LEAST_VOTE = 1 / 3
"""Of the results of the middle run: a run with fewer, too few to tell a percentile of its own, is hardly part
of the pooled one, and its own is little but chance.
"""
LEAST_FREEDOM = 2.0
"""Of a variance of seconds: with one degree Student's t reaches 13 standard errors to either side."""
Ends = tuple[float, float]


@dataclass(frozen=True)
class CellFigure:
    """A figure of a cell and its 95 % interval, None where that is not known; `results` are those behind it.

    With one run the interval of a percentile is within that run: it says nothing of how runs differ.
    """

    value: float
    low: float | None
    high: float | None
    results: int

    def said(self, form: Form = digits, unit: str = "", what: str = "") -> str:
        """30.5 ms (29.8–31.4)."""
        return with_interval(self.value, self.low, self.high, form, unit, what)

    def alone(self, form: Form = digits) -> str:
        """30.5: with as many digits as it has beside its interval."""
        return form(self.value, told_digits(self.value, self.low, self.high))


def estimated(study: Study, runs: Runs, value: Value) -> CellFigure | None:
    """A figure of the repeats of a cell that it rests on; None where there is none.

    Percentiles of latency are of all requests of these repeats together; other figures are the geometric
    mean of the repeats, with Student's interval of the mean of their logarithms.
    """
    if isinstance(value, LatencyAt):
        return pooled(study, behind(runs, value), value.percentile)
    return mean_over(runs, value)


def mean_over(runs: Runs, value: Value) -> CellFigure | None:
    """The geometric mean of the repeats that a figure rests on; None where there is none.

    Where one is 0 it is the mean, of which there is no interval.
    """
    rested = resting_on(runs, value)
    found = [known for run in rested if (known := value(run)) is not None]
    if not found:
        return None
    results = sum(run.succeeded for run in rested)
    if min(found) <= 0:
        return CellFigure(sum(found) / len(found), None, None, results)
    mean = geometric_mean(found)
    return CellFigure(mean.value, mean.low, mean.high, results)


def behind(runs: Runs, value: Value) -> Runs:
    """The repeats that a figure rests on; a percentile on all with a success, however few each has."""
    return resting_on(runs, _mean_ns if isinstance(value, LatencyAt) else value)


def _mean_ns(run: Summary) -> float | None:
    return run.latency.mean_ns


def pooled(study: Study, runs: Runs, name: str) -> CellFigure | None:
    """A percentile, `p50` to `p99.9`, of all requests of some runs together, in milliseconds.

    None where they are too few for it.
    """
    return pooled_of([study.blocks[run.cell, run.repeat] for run in runs], name)


def pooled_of(runs: Sequence[RunBlocks], name: str) -> CellFigure | None:
    """The same of the seconds of some runs."""
    seconds, percent = BlockSeries.of(runs), float(name[1:])
    whole = seconds.whole(NAME)
    (value_ns,) = told_percentiles_ns(whole, [percent])
    if value_ns is None:
        return None
    each = voting_ns(runs, percent)
    ends = between_runs(value_ns, each) if len(each) > 1 else within_run(seconds, value_ns, percent)
    low, high = (end / NS_PER_MS for end in ends) if ends else (None, None)
    return CellFigure(value_ns / NS_PER_MS, low, high, whole.total)


def voting_ns(runs: Sequence[RunBlocks], percent: float) -> list[float]:
    """The own percentiles of those runs that tell how runs differ, however few results all of them have.

    A run that is slow throughout has few results, too: where they are enough for a percentile, it counts.
    """
    every = [BlockSeries.of([run]).whole(NAME) for run in runs]
    found = [whole for whole in every if whole.total]
    least = LEAST_VOTE * median([whole.total for whole in found] or [0])
    voting = [whole for whole in found if whole.total >= min(least, least_results(percent))]
    return [own_ns for whole in voting for own_ns in percentiles_ns(whole, [percent]) if own_ns is not None]


def between_runs(value_ns: float, each_ns: Sequence[float]) -> Ends | None:
    """The interval of a pooled percentile by those of its runs, of which there are two or more; None over 0.

    Runs are independent, which their seconds are not. So the standard error is that of the mean of the
    logarithms of the runs' own percentiles, with Student's t; the middle is the pooled percentile, since
    that of a run with few results is biased. Source: S. Asmussen and P. W. Glynn, Stochastic Simulation:
    Algorithms and Analysis, Springer 2007, sectioning, whose sections are the runs here.
    """
    if min(each_ns) <= 0:
        return None
    factor = exp(mean_of_logs(each_ns).reach())
    return value_ns / factor, value_ns * factor


def within_run(seconds: BlockSeries, value_ns: float, percent: float) -> Ends | None:
    """The interval of one run's percentile, by how its seconds vary; None where they tell too little of it.

    They do where they are too few or too alike to be more than one, and where the interval would reach from
    the fastest request or to the slowest, beyond which nothing was seen.

    Source: R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the
    American Statistical Association 47 (1952).
    """
    if len(seconds.blocks) < LEAST_BLOCKS:
        return None
    beyond = share_of(*seconds.beyond(NAME, value_ns), seconds.runs)
    low, high = replace(beyond, share=1 - percent / 100).interval
    whole = seconds.whole(NAME)
    ends = percentiles_ns(whole, [0, 100 * (1 - high), 100 * (1 - low), 100])
    least, below, above, most = (value_ns if end is None else end for end in ends)
    if beyond.freedom < LEAST_FREEDOM or (least < most and (below <= least or above >= most)):
        return None
    return min(below, value_ns), max(above, value_ns)
