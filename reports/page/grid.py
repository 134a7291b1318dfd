"""Tables with one row for each endpoint, and a median over repeats in each cell."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.table import Footnotes, Table, TableCell, with_bars
from reports.stats.repeats import Runs, Value, absence, repeats, resting_on, scarcity, taints, typical
from reports.study.study import Study


@dataclass(frozen=True)
class Grid:
    """What one table shows; `axis` says what its columns count (batch or users), `head` what its rows are."""

    title: str
    caption: str
    axis: str
    head: str = "endpoint"
    bars: bool = True


def grid_table(
    study: Study,
    grid: Grid,
    columns: Sequence[float],
    rows: Mapping[str, Sequence[str]],
    cell: Callable[[str, float, Footnotes], TableCell],
) -> Table:
    """The table of `cell(row, column, notes)`; `rows` maps each row's name to the endpoints behind it."""
    notes = Footnotes()
    cells = tuple(
        (_row_head(study, name, endpoints, notes), *(cell(name, column, notes) for column in columns))
        for name, endpoints in rows.items()
    )
    heads = (grid.head, *(f"{grid.axis} {column:g}" for column in columns))
    said = disclosures(study, [endpoint for endpoints in rows.values() for endpoint in endpoints])
    shared = (repeats(study), *(text for text in said if text not in notes.texts))
    shown = with_bars(cells) if grid.bars else cells
    numeric = frozenset(range(1, len(heads)))
    return Table(grid.title, grid.caption, heads, shown, notes.texts, numeric, shared)


def _row_head(study: Study, name: str, endpoints: Iterable[str], notes: Footnotes) -> TableCell:
    return TableCell(name, notes.marks(text for endpoint in endpoints if (text := stand_in(study, endpoint))))


def number(runs: Runs, value: Value, notes: Footnotes) -> TableCell:
    """The median over repeats, marked where it rests on tainted ones; a dash and the reason without any."""
    found = typical(runs, value)
    if found is None:
        return TableCell(MISSING, notes.marks([absence(runs)]))
    return TableCell(digits(found), notes.marks(taints(resting_on(runs, value))), found)


def ratio(over: Runs, under: Runs, value: Value, notes: Footnotes) -> TableCell:
    """One median over another, with the marks of both and of their scarcity."""
    top, bottom = typical(over, value), typical(under, value)
    if top is None or not bottom:
        lacking = over if top is None else under
        return TableCell(MISSING, notes.marks([absence(lacking)]))
    sides = [resting_on(runs, value) for runs in (over, under)]
    doubts = [*taints([*sides[0], *sides[1]]), scarcity([len(side) for side in sides])]
    return TableCell(f"{digits(top / bottom)}×", notes.marks(text for text in doubts if text), top / bottom)
