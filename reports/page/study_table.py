"""Tables of a study: columns that each say what they show."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from reports.caveats.run import ENOUGH
from reports.format import MISSING, digits, milliseconds
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.figures import holds_waits
from reports.stats.repeats import Runs, Value, absence, delays_paid, resting_on, spread_of, taints
from reports.study.study import Study
from reports.summary.summary import Summary, percentile_ms

Form = Callable[[float], str]
Thing = TypeVar("Thing")
"""What a row is of: a run, the repeats of a cell, or whatever else a table lists."""


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
    """One column of medians over repeats; they are milliseconds where the head ends in ms."""
    form = milliseconds if head.endswith(" ms") else digits
    return cell(head, lambda runs, notes: number(runs, value, notes, form))


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
    cell = measured(runs, value, notes)
    return cell if cell.value is None else replace(cell, text=form(cell.value))


def measured(runs: Runs, value: Value, notes: Footnotes, form: Form = digits) -> TableCell:
    """The same with the lowest and highest of the repeats that it rests on."""
    behind = resting_on(runs, value)
    found = spread_of(behind, value)
    if found is None:
        return TableCell(MISSING, notes.marks([absence(runs)]))
    marks = [*taints(behind), *(delays_paid(behind) if holds_waits(value) else ())]
    return TableCell(found.said(form), notes.marks(marks), found.median)


FEW = "*"
"""Behind a percentile that rests on too few results; what it means is said once a page."""


def few_samples(percentile: str, results: int) -> str:
    """The mark of a percentile that rests on so few results; empty where they suffice."""
    return FEW if results < ENOUGH[percentile] else ""


def percentile_cell(runs: Runs, percentile: str, notes: Footnotes, spread: bool = False) -> TableCell:
    """A percentile in milliseconds, with a `spread` its lowest and highest over the repeats too.

    Marked for invalidated runs and for too few results behind it.
    """

    def value(run: Summary) -> float | None:
        return percentile_ms(run, percentile)

    cell = (measured if spread else number)(runs, value, notes, milliseconds)
    if cell.value is None:
        return cell
    behind = resting_on(runs, value)
    few = few_samples(percentile, min(run.succeeded for run in behind))
    marks = (*cell.marks, *notes.marks(delays_paid(behind)))
    return replace(cell, text=cell.text + few, marks=marks)


def percentile(name: str) -> Columns[Runs]:
    """One column of percentiles over repeats."""
    return cell(f"{name} ms", lambda runs, notes: percentile_cell(runs, name, notes))
