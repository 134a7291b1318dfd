"""What the repeats of a cell come to, with a 95 % interval: pooled percentiles, and means over runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from reports.fold.windows import LEAST_RESULTS, told_percentiles_ns
from reports.format import NS_PER_MS, Form, with_interval
from reports.histogram.buckets import percentiles_ns
from reports.stats.figures import InMs
from reports.stats.log_ratio import geometric_mean
from reports.stats.repeats import Runs, Value, resting_on
from reports.stats.shares import LEAST_BLOCKS, share_of
from reports.study.study import Study
from reports.summary.blocks import BlockSeries, RunBlocks
from reports.summary.summary import Summary

NAME = "latency"
"""The histogram that pooled percentiles are of."""
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
    runs: int

    def said(self, form: Form, unit: str = "") -> str:
        """30.5 ms (29.8–31.4)."""
        return with_interval(self.value, self.low, self.high, form, unit)


def estimated(study: Study, runs: Runs, value: Value) -> CellFigure | None:
    """A figure of the repeats of a cell that it rests on; None where there is none.

    Percentiles of latency are of all requests of these repeats together; other figures are the geometric
    mean of the repeats, with Student's interval of the mean of their logarithms.
    """
    if name := percentile_name(value):
        return pooled(study, behind(runs, value), name)
    rested = resting_on(runs, value)
    found = [known for run in rested if (known := value(run)) is not None]
    if not found:
        return None
    results = sum(run.succeeded for run in rested)
    if min(found) <= 0:
        return CellFigure(sum(found) / len(found), None, None, results, len(found))
    mean = geometric_mean(found)
    return CellFigure(mean.value, mean.low, mean.high, results, len(found))


def value_of(study: Study, runs: Runs, value: Value) -> float:
    """The figure itself, of repeats that have it; 0 where they do not."""
    found = estimated(study, runs, value)
    return found.value if found else 0.0


def latency_at(name: str) -> InMs:
    """That of a run at a percentile, `p50` to `p99.9`, in milliseconds."""
    return InMs(f"latency.{name.replace('.', '')}_ns")


def percentile_name(value: Value) -> str:
    """`p95` for the figure that is a run's p95 of latency; empty for any other figure."""
    return next((name for name in LEAST_RESULTS if value == latency_at(name)), "")


def behind(runs: Runs, value: Value) -> Runs:
    """The repeats that a figure rests on; a percentile on all with a success, however few each has."""
    return resting_on(runs, _mean_ns) if percentile_name(value) else resting_on(runs, value)


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
    each = [own_ns for run in runs if (own_ns := _own_ns(run, percent)) is not None]
    ends = between_runs(value_ns, each) if len(each) > 1 else within_run(seconds, value_ns, percent)
    low, high = (end / NS_PER_MS for end in ends) if ends else (None, None)
    return CellFigure(value_ns / NS_PER_MS, low, high, whole.total, len(each))


def _own_ns(run: RunBlocks, percent: float) -> float | None:
    """A run's own, however few results it has."""
    (found,) = percentiles_ns(BlockSeries.of([run]).whole(NAME), [percent])
    return found


def between_runs(value_ns: float, each_ns: Sequence[float]) -> Ends | None:
    """The interval of a pooled percentile by those of its runs, of which there are two or more; None over 0.

    Runs are independent, which their seconds are not. So the standard error is that of the mean of the
    logarithms of the runs' own percentiles, with Student's t; the middle is the pooled percentile, since
    that of a run with few results is biased. Source: S. Asmussen and P. W. Glynn, Stochastic Simulation:
    Algorithms and Analysis, Springer 2007, sectioning, whose sections are the runs here.
    """
    if min(each_ns) <= 0:
        return None
    mean = geometric_mean(each_ns)
    factor = sqrt((mean.high or 1.0) / (mean.low or 1.0))
    return value_ns / factor, value_ns * factor


def within_run(seconds: BlockSeries, value_ns: float, percent: float) -> Ends | None:
    """The interval of one run's percentile, by how its seconds vary; None where they are too few.

    Source: R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the
    American Statistical Association 47 (1952).
    """
    if len(seconds.blocks) < LEAST_BLOCKS:
        return None
    beyond = share_of(*seconds.beyond(NAME, value_ns), seconds.runs)
    low, high = replace(beyond, share=1 - percent / 100).interval
    ends = percentiles_ns(seconds.whole(NAME), [100 * (1 - high), 100 * (1 - low)])
    below, above = (value_ns if end is None else end for end in ends)
    return min(below, value_ns), max(above, value_ns)
