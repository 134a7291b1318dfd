"""history.csv: one row for each study of each series."""

from collections.abc import Iterator, Sequence

from reports.cells_csv.columns import csv_text
from reports.history.occasions import coincidences
from reports.history.series import CellSeries

COLUMNS = tuple(
    """study started_utc place cell series measure value runs level outlier
    change_ratio change_low change_high change_first change_last changed_then""".split()  # noqa: SIM905
)


def render_history(every: Sequence[CellSeries]) -> str:
    """The whole file; `measure` is a column of cells.csv, `series` what tells a cell's series apart.

    `value` is the geometric mean of so many repeats, `level` that of the studies between changes. The last
    six stand where a new level begins: its ratio to the one before with the 95 % interval, the first and the
    last study that may be the first on it, and the facts that changed among those, by likelihood.
    """
    return csv_text(COLUMNS, (row for one in every for row in _rows(one)))


def _rows(one: CellSeries) -> Iterator[Sequence[object]]:
    begun = {change.at: change for change in one.course.changes}
    for begin, end, level in one.levels:
        for at in range(begin, end):
            study, change = one.studies[at], begun.get(at)
            told: Sequence[object] = ("",) * 6
            if change:
                ratio, ends = change.ratio, (one.studies[change.first].utc, one.studies[change.last].utc)
                facts = ";".join(it.what for it in coincidences(one, change))
                told = (ratio.ratio, ratio.low, ratio.high, *ends, facts)
            outlier = int(at in one.course.outlying)
            known = (one.told_apart, one.measure.column, one.values[at], one.runs[at], level, outlier)
            yield study.name, study.utc, study.place, one.cell, *known, *told
