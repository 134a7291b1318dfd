"""Tables of a study: columns that each say what they show."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reports.format import MISSING, Form, digits, milliseconds
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.failures import beside
from reports.stats.figures import holds_waits, images_per_s
from reports.stats.percentiles import behind, estimated
from reports.stats.repeats import Runs, Value, absence, delays_paid, taints, typical
from reports.study.study import Study
from reports.summary.summary import LatencyAt, Summary

Thing = TypeVar("Thing")
"""What a row is of: a run, the repeats of a cell, or whatever else a table lists."""


FEW = "*"
"""Behind a percentile that rests on too few results; what it means is said once a page."""
WITH_INTERVAL = frozenset({"p50", "p95"})
"""The percentiles whose intervals tables show."""


class StudyNotes(Footnotes):
    """The footnotes of one table of a study."""

    def __init__(self, study: Study) -> None:
        super().__init__()
        self.study = study

    def way(self, run: Summary) -> TableCell:
        """A row's first cell: the way of a run."""
        return TableCell(self.study.named(run.way))


@dataclass(frozen=True)
class Columns(Generic[Thing]):
    """Heads side by side, and the cells or texts below them in a thing's row."""

    heads: tuple[str, ...]
    cells: Callable[[Thing, StudyNotes], Iterable[TableCell | str]]
    numeric: bool = True

    def row(self, thing: Thing, notes: StudyNotes) -> list[TableCell | str]:
        """One for each head: where there are fewer cells, dashes."""
        known = list(self.cells(thing, notes))
        return known + [MISSING] * (len(self.heads) - len(known))


def cell(head: str, made: Callable[[Thing, StudyNotes], TableCell], numeric: bool = True) -> Columns[Thing]:
    """One column whose cells may have marks."""
    return Columns((head,), lambda thing, notes: (made(thing, notes),), numeric)


def text(head: str, said: Callable[[Thing], str], numeric: bool = True) -> Columns[Thing]:
    """One column of plain texts."""
    return Columns((head,), lambda thing, _: (said(thing),), numeric)


def figure(head: str, value: Value) -> Columns[Runs]:
    """One column of a figure of the repeats, in milliseconds where the head ends in ms."""
    form = milliseconds if head.endswith(" ms") else digits
    return cell(head, lambda runs, notes: figure_cell(runs, value, notes, form))


def figure_cell(runs: Runs, value: Value, notes: StudyNotes, form: Form = digits) -> TableCell:
    """Its cell: images per second and percentiles have their interval, others are medians."""
    made = measured if value is images_per_s or isinstance(value, LatencyAt) else number
    return made(runs, value, notes, form)


ENDPOINT: Columns[Runs] = cell("endpoint", lambda runs, notes: notes.way(runs[0]), numeric=False)


def study_table(
    study: Study,
    title: str,
    caption: str,
    columns: Sequence[Columns[Thing]],
    things: Iterable[Thing],
    *,
    folded: bool = False,
) -> Table:
    """One row for each thing."""
    notes = StudyNotes(study)
    rows = [[shown for column in columns for shown in column.row(thing, notes)] for thing in things]
    numeric = [column.numeric for column in columns for _ in column.heads]
    return table_of(
        title,
        (head for column in columns for head in column.heads),
        rows,
        caption=caption,
        notes=notes,
        numeric=(at for at, is_numeric in enumerate(numeric) if is_numeric),
        folded=folded,
    )


def number(runs: Runs, value: Value, notes: Footnotes, form: Form = digits) -> TableCell:
    """The median over repeats, marked where it rests on tainted ones; a dash and the reason without any."""
    found = typical(runs, value)
    if found is None:
        return TableCell(MISSING, notes.marks([absence(runs)]))
    return TableCell(form(found, 3), _marks(runs, value, notes), found)


def measured(runs: Runs, value: Value, notes: StudyNotes, form: Form = digits) -> TableCell:
    """A figure of all repeats with its 95 % interval, marked likewise, and for too few results behind it.

    A percentile is of all their requests; a high one has no interval, which tables have no room for.
    """
    found = estimated(notes.study, runs, value)
    if found is None:
        return TableCell(MISSING, notes.marks([lacking(runs, value)]))
    if isinstance(value, LatencyAt):
        name = value.percentile
        text = found.said(form) if name in WITH_INTERVAL else form(found.value, 3)
        text += few_samples(name, found.results)
    else:
        text = found.said(form)
    return TableCell(text, _marks(runs, value, notes), found.value)


def lacking(runs: Runs, value: Value) -> str:
    """Why there is no such figure: of a percentile, that there are too few results for it."""
    if isinstance(value, LatencyAt) and any(run.succeeded for run in runs):
        return f"{value.percentile} takes {LEAST_RESULTS[value.percentile]:,} results"
    return absence(runs)


def _marks(runs: Runs, value: Value, notes: Footnotes) -> tuple[int, ...]:
    rested = behind(runs, value)
    waits = delays_paid(rested) if holds_waits(value) else ()
    return notes.marks([*taints(rested), *beside(runs, rested), *waits])


def few_samples(percentile: str, results: int) -> str:
    """The mark of a percentile that rests on so few results; empty where they suffice."""
    return FEW if results < ENOUGH[percentile] else ""


def percentile_cell(runs: Runs, percentile: str, notes: StudyNotes) -> TableCell:
    """A percentile of all requests of the repeats, in milliseconds."""
    return measured(runs, LatencyAt(percentile), notes, milliseconds)


def percentile(name: str) -> Columns[Runs]:
    """One column of percentiles over repeats."""
    return cell(f"{name} ms", lambda runs, notes: percentile_cell(runs, name, notes))
