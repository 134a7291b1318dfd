"""Tables with one row for each endpoint, and a median over repeats in each cell."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.table import Cell, Notes, Table, with_bars
from reports.study.study_reports import Study
from reports.summary.summary import Summary

Value = Callable[[Summary], float | None]
Runs = Sequence[Summary]
COMPARABLE_RUNS, ENOUGH_RUNS = 2, 3


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
    cell: Callable[[str, float, Notes], Cell],
) -> Table:
    """The table of `cell(row, column, notes)`; `rows` maps each row's name to the endpoints behind it."""
    notes = Notes()
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


def _row_head(study: Study, name: str, endpoints: Iterable[str], notes: Notes) -> Cell:
    return Cell(name, notes.marks(text for endpoint in endpoints if (text := stand_in(study, endpoint))))


def repeats(study: Study) -> str:
    """How many runs are behind each number, in a sentence."""
    most = max((run.repeat for run in study.started), default=1)
    return (
        "One run per cell."
        if most == 1
        else f"Median of up to {most} repeats; disqualified ones count only where there is no other."
    )


def typical(runs: Runs, value: Value) -> float | None:
    """The median over the repeats it rests on; None where there are none."""
    known = [found for run in resting_on(runs, value) if (found := value(run)) is not None]
    return median(known) if known else None


def resting_on(runs: Runs, value: Value) -> Runs:
    """The repeats that have the value and no disqualifying caveat, or all that have it where each has one."""
    known = [run for run in runs if value(run) is not None]
    return [run for run in known if not run.tainted] or known


def scarcity(counts: Collection[int]) -> str:
    """What a comparison cannot tell when it rests on so many runs of each cell; empty where they suffice."""
    if max(counts) < COMPARABLE_RUNS:
        return "inconclusive: one run per cell; --repeats 5 would tell"
    if min(counts) < COMPARABLE_RUNS:
        return "inconclusive where a cell has one run; --repeats 5 would tell"
    few = min(counts) < ENOUGH_RUNS
    return f"with fewer than {ENOUGH_RUNS} runs per cell, small differences may be chance" if few else ""


def number(runs: Runs, value: Value, notes: Notes) -> Cell:
    """The median over repeats, marked where it rests on tainted ones; a dash and the reason without any."""
    found = typical(runs, value)
    if found is None:
        return Cell(MISSING, notes.marks([absence(runs)]))
    return Cell(digits(found), notes.marks(taints(resting_on(runs, value))), found)


def ratio(over: Runs, under: Runs, value: Value, notes: Notes) -> Cell:
    """One median over another, with the marks of both and of their scarcity."""
    top, bottom = typical(over, value), typical(under, value)
    if top is None or not bottom:
        lacking = over if top is None else under
        return Cell(MISSING, notes.marks([absence(lacking)]))
    sides = [resting_on(runs, value) for runs in (over, under)]
    doubts = [*taints([*sides[0], *sides[1]]), scarcity([len(side) for side in sides])]
    return Cell(f"{digits(top / bottom)}×", notes.marks(text for text in doubts if text), top / bottom)


def taints(runs: Runs) -> Iterator[str]:
    """The advice of each caveat that disqualifies one of the runs."""
    return (f"{doubt.code}: {doubt.advice}" for run in runs for doubt in run.caveats if doubt.tainted)


def absence(runs: Runs) -> str:
    """Why there is no number."""
    if not runs:
        return "not in this study's plan"
    if not any(run.started for run in runs):
        return "not run"
    if any(run.succeeded for run in runs):
        return "not stated by the server"
    ends = {run.status for run in runs if run.started} - {"done"}
    return f"no request succeeded ({', '.join(sorted(ends))})" if ends else "no request succeeded"
