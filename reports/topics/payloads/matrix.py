"""The five tables of the published study, from whatever a study has, and the floors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.backend_facts import FLOOR
from reports.format import digits, milliseconds
from reports.page.question import Question
from reports.page.study_table import Columns, StudyNotes, cell, figure_cell, study_table
from reports.page.table import Table, TableCell, with_best
from reports.stats.figures import compute_ms, images_per_s, p50_ms
from reports.stats.repeats import (
    Runs,
    Value,
    alone,
    grouped,
)
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Summary, Way

Column = float | Batch
Pick = Callable[[Way, Any], Runs]


@dataclass(frozen=True)
class Grid:
    """What one table shows; `axis` says what its columns count, batch or users.

    `least`: the lowest number is the best; such numbers are milliseconds.
    """

    title: str
    caption: str
    axis: str
    least: bool = False

    def heads(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """Those of the columns of numbers."""
        return tuple(f"{self.axis} {at if isinstance(at, Batch) else f'{at:g}'}" for at in columns)


LATENCY = Grid(
    "Serial latency, p50", "Milliseconds per request, one user; lower is better.", "batch", least=True
)
THROUGHPUT = Grid("Serial throughput", "Images per second, one user; higher is better.", "batch")
CONCURRENT = Grid("Concurrent throughput, batch {}", "Images per second; higher is better.", "users")
"""Of each batch that several users sent."""
COMPUTE = Grid(
    "Server compute", "Milliseconds per request by the server's own count, one user.", "batch", True
)


def matrix_tables(study: Study) -> Iterator[Table]:
    """Those of the five that the plan has cells for."""
    runs = alone(run for run in study.runs if not run.is_floor)
    serial = [run for run in runs if run.serial]
    batches, by_batch = sorted({batch_of(run) for run in serial}), picker(serial, batch_of)
    if serial:
        yield by_endpoint(study, LATENCY, batches, by_batch, p50_ms)
        yield by_endpoint(study, THROUGHPUT, batches, by_batch, images_per_s)
    for batch, many in sorted(grouped(runs, batch_of).items()):
        yield from concurrent(study, batch, [run for run in many if run.closed])
    if any(run.server.compute_ns is not None for run in serial):
        yield by_endpoint(study, COMPUTE, batches, by_batch, compute_ms)


def concurrent(study: Study, batch: Batch, runs: Runs) -> Iterator[Table]:
    """One batch by users, where there are several numbers of them."""
    levels = sorted({run.level for run in runs})
    if levels[1:]:
        grid = replace(CONCURRENT, title=CONCURRENT.title.format(batch))
        yield by_endpoint(study, grid, levels, picker(runs, lambda run: run.level), images_per_s)


def picker(runs: Runs, column: Callable[[Summary], Column]) -> Pick:
    """The function that finds one cell's repeats among some runs."""
    return lambda way, at: [run for run in runs if run.way == way and column(run) == at]


def by_endpoint(study: Study, grid: Grid, at: Sequence[Column], pick: Pick, value: Value) -> Table:
    """One row for each way to the model that has a run in some column, the best of each column marked."""
    form = milliseconds if grid.least else digits
    columns: Sequence[Columns[Way]] = (
        cell("endpoint", lambda way, _: TableCell(study.named(way)), numeric=False),
        Columns(
            grid.heads(at), lambda way, notes: (figure_cell(pick(way, one), value, notes, form) for one in at)
        ),
    )
    ways = [way for way in study.ways if any(pick(way, one) for one in at)]
    table = study_table(study, grid.title, grid.caption, columns, ways)
    return replace(table, rows=with_best(table.rows, grid.least))


def _beside(head: str, value: Value) -> Columns[tuple[Runs, Runs]]:
    def cells(pair: tuple[Runs, Runs], notes: StudyNotes) -> Iterator[TableCell]:
        form = milliseconds if head.endswith(" ms") else digits
        return (figure_cell(runs, value, notes, form) for runs in pair)

    return Columns((head, "floor's"), cells)


COLUMNS: Sequence[Columns[tuple[Runs, Runs]]] = (
    cell("cell", lambda pair, _: TableCell(pair[0][0].cell), numeric=False),
    _beside("p50 ms", p50_ms),
    _beside("images/s", images_per_s),
)


def floors(study: Study) -> Table:
    """One row for each cell that has a floor, by the repeats of both."""
    ordered = study.ordered(study.runs)
    by_key = grouped(ordered, lambda run: (*run.way, batch_of(run), run.load, run.arrivals, run.level))
    twins = {key: (study.floors.get(key[0], ""), *key[1:]) for key in by_key}
    pairs = [(runs, by_key[twins[key]]) for key, runs in by_key.items() if twins[key] in by_key]
    caption = f"Each cell next to the same requests to a model that does nothing. {FLOOR}"
    return study_table(study, "Floor", caption, COLUMNS, pairs)


SERIAL = Question("serial", "Results", (matrix_tables,))
FLOORS = Question("floors", "Results", (floors,), place=9)
