"""How much of n servers', GPUs' or workers' worth is had: the rate of n over n times the rate of one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.format import MISSING, Form, digits, milliseconds, with_interval
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, few_samples, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.percentiles import CellFigure, mean_over
from reports.stats.repeats import Runs, grouped, resting_on, scarcity, taints, values
from reports.stats.scaling_laws import BestLaw, NoLaw
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.load.saturation import (
    Curve,
    NoKnee,
    Point,
    curves,
    curves_chart,
    explores_load,
    fallen,
    saturation,
)
from reports.topics.published.step6b import SCALING, of_growth

UNITS = ("instances", "GPUs", "workers")
NO_LAW, NOT_REACHED = "no law", "not reached"
BY_MEAN = "mean latency: some level has too few results for p95"


@dataclass(frozen=True)
class ScalingStep:
    """Some units: their rate, and how many times that of the fewest it is.

    `promised` times it would be if each unit brought as much. Of the fewest there is no ratio: they are the
    measure.
    """

    units: int
    rate: CellFigure
    times: LogRatio | None
    promised: float

    @property
    def efficiency(self) -> LogRatio | None:
        """(rate(n) ÷ n) ÷ (rate(m) ÷ m), with m the fewest units, usually 1."""
        return self.times and replace(self.times, ratio=self.times.ratio / self.promised)


@dataclass(frozen=True)
class Scaling:
    """Runs of one load that differ in a number of units alone, by that number, fewest first."""

    unit: str
    by_units: Mapping[int, Runs]

    @property
    def steps(self) -> tuple[ScalingStep, ...]:
        """One for each number of units."""
        fewest = min(self.by_units)
        rates = {units: values(runs, images_per_s) for units, runs in self.by_units.items()}
        return tuple(
            ScalingStep(
                units,
                rate,
                log_ratio(rates[units], rates[fewest]) if units > fewest else None,
                units / fewest,
            )
            for units, runs in self.by_units.items()
            if (rate := mean_over(runs, images_per_s))
        )


def scalings(study: Study) -> tuple[Scaling, ...]:
    """Each load that was run with several numbers of instances, GPUs or workers; floors are left out."""
    runs = [run for run in study.started if not run.is_floor and images_per_s(run)]
    return tuple(found for unit in UNITS for found in _over(unit, runs))


def _over(unit: str, runs: Runs) -> Iterator[Scaling]:
    for alike in grouped((run for run in runs if units_of(run, unit)), lambda run: _else(run, unit)).values():
        by_units = grouped(alike, lambda run: units_of(run, unit) or 0)
        if len(by_units) > 1:
            yield Scaling(unit, dict(sorted(by_units.items())))


def units_of(run: Summary, unit: str) -> int | None:
    """How many of a unit a run had; None where that is not known."""
    if unit == "workers":
        return run.workers
    return run.gpus if unit == "GPUs" else run.serving.instances if run.serving else None


def _else(run: Summary, unit: str) -> tuple[object, ...]:
    """All that must be alike for runs to differ in that unit alone."""
    load, how = (run.endpoint, run.batch, run.load, run.level), run.others("topology", "instances")
    return (*load, *how, *(units_of(run, other) for other in UNITS if other != unit))


def _knee(curve: Curve, notes: StudyNotes) -> Iterator[TableCell]:
    """The knee with its rate and latency, and how many users are enough with their latency."""
    found = curve.knee
    if isinstance(found, NoKnee):
        yield TableCell(NOT_REACHED if found.rising else MISSING, notes.marks([found.reason]))
        return
    at, enough = found.at, found.enough
    yield TableCell(f"{at.users:g}", notes.marks(found.doubts), at.users)
    yield from (_figure(at.rate, digits), _latency(at, found.by_p95, notes))
    yield TableCell(f"{enough.users:g}", (), enough.users)
    yield _latency(enough, found.by_p95, notes)


def _latency(point: Point, by_p95: bool, notes: StudyNotes) -> TableCell:
    found = point.latency(by_p95)
    few = few_samples("p95", found.results) if by_p95 else ""
    return _figure(found, milliseconds, few, () if by_p95 else notes.marks([BY_MEAN]))


def _figure(found: CellFigure, form: Form, few: str = "", marks: tuple[int, ...] = ()) -> TableCell:
    return TableCell(f"{found.said(form)}{few}", marks, found.value)


def _highest(curve: Curve, notes: StudyNotes) -> TableCell:
    """Marked where it is invalidated, and where more users are shown to make less."""
    marks = notes.marks([*taints(curve.highest.runs), *fallen(curve)])
    return _figure(curve.highest.rate, digits, marks=marks)


def _law(law: BestLaw | NoLaw, notes: StudyNotes) -> tuple[TableCell, ...]:
    if isinstance(law, NoLaw):
        return (TableCell(NO_LAW, notes.marks([f"{NO_LAW}: {law.reason}"])),)
    alike, (rival, more) = law.not_told_apart, law.rivals[0]
    marks = notes.marks([f"{' and '.join(alike)} describe it about as well"] if alike else [])
    return (
        TableCell(law.name, marks),
        TableCell("; ".join(map(str, law.estimates))),
        TableCell(digits(100 * law.miss), (), 100 * law.miss),
        TableCell(f"{digits(more)} ({rival})", (), more),
    )


COLUMNS: Sequence[Columns[Curve]] = (
    text("endpoint", lambda curve: curve.name, numeric=False),
    text("batch", lambda curve: str(curve.batch)),
    Columns(("knee at users", "images/s there", "p95 ms there", "users for 95 %", "p95 ms with them"), _knee),
    cell("highest images/s", _highest),
)
LAW: Columns[Curve] = Columns(
    ("law", "its parameters", "off by %", "ΔAICc to the next"),
    lambda curve, notes: _law(curve.law, notes),
    numeric=False,
)
SATURATED = (
    "Knee: the users with the greatest throughput per p95. Users for 95 %: the fewest with 95 % of the "
    "highest images/s."
)
FITTED = (
    "The law is the best of six by AICc, with 95 % CIs that hold if it does. No peak is read off it. "
    "docs/analysis.md defines them."
)


def saturation_table(study: Study) -> Table | None:
    """One row for each way and batch that was run at two or more levels; None where no load was explored."""
    if not explores_load(study):
        return None
    found = curves(study)
    fitted = any(isinstance(curve.law, BestLaw) for curve in found)
    caption = f"{SATURATED} {FITTED}" if fitted else SATURATED
    columns = (*COLUMNS, LAW) if fitted else COLUMNS
    return study_table(study, "Saturation", caption, columns, found)


def _behind(scaling: Scaling, units: int) -> Runs:
    return resting_on(scaling.by_units[units], images_per_s)


def _growth(row: tuple[Scaling, ScalingStep], notes: StudyNotes) -> tuple[TableCell, ...]:
    """The doubts of a rate stand beside it, those of both rates and of their repeats beside their ratios."""
    scaling, step = row
    fewest = min(scaling.by_units)
    runs, least = _behind(scaling, step.units), _behind(scaling, fewest)
    of_rate, compared = notes.marks(taints(runs)), step.units > fewest
    doubts = [*taints([*runs, *least]), scarcity([len(runs), len(least)])] if compared else []
    of_ratios = notes.marks(filter(None, doubts))
    ratios = (_ratio(*figure, of_ratios) for figure in ((step.times, 1), (step.efficiency, 100)))
    return _figure(step.rate, digits, marks=of_rate), *ratios


def _ratio(found: LogRatio | None, unit: float, marks: tuple[int, ...]) -> TableCell:
    """In a unit, as 100 is percent; that of the fewest units over themselves is 1."""
    if found is None:
        return TableCell(digits(unit), (), unit)
    low, high = (end and unit * end for end in (found.low, found.high))
    return TableCell(with_interval(unit * found.ratio, low, high), marks, unit * found.ratio)


def _limits(row: tuple[Scaling, ScalingStep]) -> str:
    runs = _behind(row[0], row[1].units)
    return ", ".join(dict.fromkeys(run.limit.code for run in runs if run.limit)) or MISSING


STEP_COLUMNS: Sequence[Columns[tuple[Scaling, ScalingStep]]] = (
    text("cell", lambda row: _behind(row[0], row[1].units)[0].cell, numeric=False),
    text("of", lambda row: row[0].unit, numeric=False),
    text("units", lambda row: str(row[1].units)),
    Columns(("images/s", "times", "efficiency %"), _growth),
    text("limit", _limits, numeric=False),
)


def scaling_table(study: Study) -> Table:
    """One row for each number of model instances, GPUs or workers that a load was run with."""
    found = scalings(study)
    return study_table(
        study,
        "Scaling efficiency",
        "Images/s over what the fewest units promise: n times as much for n times as many, with 95 % CIs by "
        "Welch's t of the logs. Workers make the same users' "
        "requests: more of them help only where the client was the bottleneck. Only where the bottleneck is "
        f"the server does this say how servers scale. {SCALING if of_growth(study) else ''}".rstrip(),
        STEP_COLUMNS,
        ((scaling, step) for scaling in found for step in scaling.steps),
    )


GROWTH = Question(
    "growth",
    "Load and cost",
    (saturation_table, scaling_table, curves_chart),
    saturation,
    Theme.SATURATION,
)
