"""compare.csv: one row for each measure, cell and other side."""

from collections.abc import Iterable, Iterator, Sequence

from reports.cells_csv.columns import csv_text
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.compare.failures import failures, mean_pct
from reports.compare.matching import matches

COLUMNS = tuple(
    """cell measure base other base_value other_value ratio low high runs_base runs_other verdict
    caveats_base caveats_other""".split()  # noqa: SIM905
)
FAILED = "failures_pct"


def render_comparison(sides: Sequence[Side]) -> str:
    """The whole file; `measure` is a column of cells.csv, or `failures_pct`, the percent of failed requests.

    The values are medians over the counted repeats, for failures means of all; ratio, low and high are other
    over base and its 95 % interval, empty where there is none. Caveats are codes joined by `;`.
    """
    base, *others = sides
    rows = (row for other in others for row in (*_measured(base, other), *_failed(base, other)))
    return csv_text(COLUMNS, rows)


def _measured(base: Side, other: Side) -> Iterator[Sequence[object]]:
    for it in matches(base, other):
        yield (
            *(it.cell, it.measure.column, base.name, other.name, it.base.median, it.other.median),
            *(it.ratio.ratio, it.ratio.low, it.ratio.high, len(it.base.rows), len(it.other.rows), it.verdict),
            *(_codes(it.base.rows), _codes(it.other.rows)),
        )


def _failed(base: Side, other: Side) -> Iterator[Sequence[object]]:
    for it in failures(base, other):
        below, above = mean_pct(it.base), mean_pct(it.other)
        ratio = above / below if above and below else None
        yield (
            *(it.cell, FAILED, base.name, other.name, below, above, ratio, None, None),
            *(len(it.base.rows), len(it.other.rows), it.verdict),
            *(_codes(it.base.rows), _codes(it.other.rows)),
        )


def _codes(rows: Iterable[Row]) -> str:
    return ";".join(dict.fromkeys(code for row in rows for code in row.codes))
