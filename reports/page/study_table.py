"""Tables of a study: columns that each say what they show, and what every such table tells of its rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from reports.caveats.run import ENOUGH
from reports.format import MISSING, digits, plural
from reports.page.disclosures import disclosures
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.repeats import Runs, Value, absence, resting_on, spread_of, taints
from reports.study.study import Study
from reports.summary.summary import Summary, percentile_ms

Thing = TypeVar("Thing")
"""What a row is of: a run, the repeats of a cell, or whatever else a table lists."""


class StudyNotes(Footnotes):
    """The footnotes of one table of a study, and the endpoints that its rows are of."""

    def __init__(self, study: Study) -> None:
        super().__init__()
        self.study = study
        self.endpoints: list[str] = []

    def head(self, name: str, *endpoints: str, doubts: Iterable[str] = ()) -> TableCell:
        """A row's first cell, marked where it stands in for something else, and with doubts."""
        self.endpoints.extend(endpoints)
        known = self.study.stand_ins
        said = (known[endpoint] for endpoint in endpoints if endpoint in known)
        return TableCell(name, self.marks([*said, *doubts]))

    def unmarked(self) -> Iterator[str]:
        """What is to be disclosed of the endpoints of the rows, as far as no note says so."""
        return (text for text in disclosures(self.study, self.endpoints) if text not in self.texts)

    def way(self, run: Summary) -> TableCell:
        """The same with the way of a run for a name."""
        return self.head(self.study.named(run.way), run.endpoint)


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
    """One column of medians over repeats."""
    return cell(head, lambda runs, notes: number(runs, value, notes))


ENDPOINT: Columns[Runs] = cell("endpoint", lambda runs, notes: notes.way(runs[0]), numeric=False)


def study_table(
    study: Study,
    title: str,
    caption: str,
    columns: Sequence[Columns[Thing]],
    things: Iterable[Thing],
    *,
    shared: Sequence[str] = (),
    endpoints: Iterable[str] | None = None,
    disclosed: bool = True,
    folded: bool = False,
) -> Table:
    """One row for each thing.

    It shares with others `shared`, and what is `disclosed` of its endpoints, by default those of its rows, as
    far as no note says that.
    """
    notes = StudyNotes(study)
    rows = [[shown for column in columns for shown in column.row(thing, notes)] for thing in things]
    notes.endpoints = notes.endpoints if endpoints is None else list(endpoints)
    numeric = [column.numeric for column in columns for _ in column.heads]
    return table_of(
        title,
        (head for column in columns for head in column.heads),
        rows,
        caption=caption,
        notes=notes,
        numeric=(at for at, is_numeric in enumerate(numeric) if is_numeric),
        shared=(*shared, *(notes.unmarked() if disclosed else ())),
        folded=folded,
    )


def number(runs: Runs, value: Value, notes: Footnotes) -> TableCell:
    """The median over repeats, marked where it rests on tainted ones; a dash and the reason without any."""
    cell = measured(runs, value, notes)
    return cell if cell.value is None else replace(cell, text=digits(cell.value))


def measured(runs: Runs, value: Value, notes: Footnotes) -> TableCell:
    """The same with the lowest and highest of the repeats that it rests on."""
    behind = resting_on(runs, value)
    found = spread_of(behind, value)
    if found is None:
        return TableCell(MISSING, notes.marks([absence(runs)]))
    return TableCell(str(found), notes.marks(taints(behind)), found.median)


def few_samples(percentile: str, results: int) -> list[str]:
    """The doubt in a percentile that rests on so few results; none where they suffice."""
    enough = ENOUGH[percentile]
    return [] if results >= enough else [f"few-samples: {percentile} needs {plural(enough, 'result')}"]


def percentile_cell(runs: Runs, percentile: str, notes: Footnotes, spread: bool = False) -> TableCell:
    """A percentile in milliseconds, with a `spread` its lowest and highest over the repeats too.

    Marked for disqualified runs and for too few results behind it.
    """

    def value(run: Summary) -> float | None:
        return percentile_ms(run, percentile)

    cell = (measured if spread else number)(runs, value, notes)
    if cell.value is None:
        return cell
    doubts = few_samples(percentile, min(run.succeeded for run in resting_on(runs, value)))
    return replace(cell, marks=tuple(sorted({*cell.marks, *notes.marks(doubts)})))


def percentile(name: str) -> Columns[Runs]:
    """One column of percentiles over repeats."""
    return cell(f"{name} ms", lambda runs, notes: percentile_cell(runs, name, notes))
