"""compare.csv: one row for each measure, cell and candidate."""

from collections.abc import Iterable, Iterator, Sequence

from reports.cells_csv.columns import csv_text
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.compare.failures import Failures, failures, mean_pct
from reports.compare.matching import Match, matches

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
    return csv_text(COLUMNS, (row for other in others for row in _rows(base, other)))


def _rows(base: Side, other: Side) -> Iterator[Sequence[object]]:
    for it in matches(base, other):
        values = (it.base.median, it.other.median, it.ratio.ratio, it.ratio.low, it.ratio.high)
        yield _row(base, other, it, it.measure.column, values)
    for failed in failures(base, other):
        below, above = mean_pct(failed.base), mean_pct(failed.other)
        ratio = above / below if above and below else None
        yield _row(base, other, failed, FAILED, (below, above, ratio, None, None))


def _row(
    base: Side, other: Side, it: Match | Failures, measure: str, values: Iterable[float | None]
) -> Sequence[object]:
    counts = (len(it.base.rows), len(it.other.rows))
    codes = (_codes(it.base.rows), _codes(it.other.rows))
    return it.cell, measure, base.name, other.name, *values, *counts, it.verdict, *codes


def _codes(rows: Iterable[Row]) -> str:
    return ";".join(dict.fromkeys(code for row in rows for code in row.codes))
