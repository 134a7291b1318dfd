"""The table of failed requests: the cells in which some side has any."""

from collections.abc import Mapping, Sequence

from reports.cells_csv.side import Side
from reports.compare.failures import Failures, failures
from reports.compare.tables import verdict_head
from reports.format import MISSING, digits
from reports.page.table import Cell, Rows, Table


def failures_table(base: Side, others: Sequence[Side]) -> Table:
    """One row for each cell in which a request failed on some side."""
    by_side = {side.letter: {it.cell: it for it in failures(base, side)} for side in others}
    cells = [cell for cell in base.cells if any(cell in of and of[cell].any for of in by_side.values())]
    rows: Rows = tuple(_failure_row(cell, others, by_side) for cell in cells)
    heads = ["cell", f"{base.letter} %"]
    for side in others:
        heads += [f"{side.letter} %", verdict_head(base, side, others)]
    numeric = frozenset({1, *(2 + 2 * at for at in range(len(others)))})
    caption = (
        "Percent of the requests, the mean of all repeats; lower is better. A verdict takes two runs on each "
        "side, and compares by the 95 % interval of the difference, by how the repeats vary and by how few "
        "requests there were. Cells without a failure are left out."
    )
    return Table("Failed requests", caption, tuple(heads), rows, numeric=numeric)


def _failure_row(
    cell: str, others: Sequence[Side], by_side: Mapping[str, Mapping[str, Failures]]
) -> tuple[Cell, ...]:
    found = [by_side[side.letter].get(cell) for side in others]
    shares = next(it.base for it in found if it)
    told = [cell for it in found for cell in _failed(it)]
    return Cell(cell), Cell(percent(shares)), *told


def _failed(it: Failures | None) -> tuple[Cell, Cell]:
    return (Cell(percent(it.other)), Cell(it.verdict)) if it else (Cell(MISSING), Cell(MISSING))


def percent(shares: Sequence[float]) -> str:
    """The mean of some shares, of which there is at least one."""
    return digits(100 * sum(shares) / len(shares))
