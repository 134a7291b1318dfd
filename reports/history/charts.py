"""A chart for each cell: its measures over the studies, the levels, and where they changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.format import multiple, plural
from reports.history.series import GPU, CellSeries
from reports.page.page import Chart, rounded
from reports.stats.repeats import grouped

OPEN = 6
"""Charts that are not folded: of cells with changes, the greatest first."""


def cell_charts(every: Sequence[CellSeries]) -> Iterator[Chart]:
    """Those of cells with changes first; a cell of which no measure has two studies has none."""
    cells = [
        of for of in grouped(every, lambda one: one.name).values() if any(len(one.values) > 1 for one in of)
    ]
    cells.sort(key=_most_of, reverse=True)
    for at, of in enumerate(cells):
        yield cell_chart(of, folded=at >= OPEN or (at > 0 and not _most_of(of)))


def _most_of(of: Sequence[CellSeries]) -> float:
    return max(map(_most, of))


def _most(one: CellSeries) -> float:
    """The greatest of its changes, as how many times; 0 without any."""
    return max((max(it.ratio.ratio, 1 / it.ratio.ratio) for it in one.course.changes), default=0.0)


def cell_chart(of: Sequence[CellSeries], folded: bool) -> Chart:
    """One cell's, the measure with the surest change first."""
    measures = sorted(of, key=lambda one: min((it.p for it in one.course.changes), default=1.0))
    changes = sum(len(one.course.changes) for one in of)
    caption = f"{plural(changes, 'change')}." if changes else "No change."
    data = {"measures": [_drawn(one) for one in measures]}
    return Chart(of[0].name, caption, "history", data, folded=folded)


def _drawn(one: CellSeries) -> Mapping[str, Any]:
    """A measure, as the script takes it: points in order of studies, levels by their ends."""
    return {
        "title": one.measure.title,
        "unit": one.measure.unit.rpartition(" ")[2],
        "in_ms": one.measure not in GPU and not one.measure.more_is_faster,
        "utc": [study.utc for study in one.studies],
        "names": [study.side.name for study in one.studies],
        "values": [rounded(value) for value in one.values],
        "runs": list(one.runs),
        "outliers": sorted(one.course.outlying),
        "levels": [[begin, end - 1, rounded(level)] for begin, end, level in one.levels],
        "changes": [_marked(one, at) for at in range(len(one.course.changes))],
    }


def _marked(one: CellSeries, at: int) -> Mapping[str, Any]:
    change = one.course.changes[at]
    ratio = change.ratio
    word = one.word(ratio.ratio)
    return {
        "at": change.at,
        "first": change.first,
        "last": change.last,
        "label": f"{multiple(ratio.ratio)}×",
        "told": f"{word}, {ratio.figure}× ({ratio.interval})",
        "worse": word == "slower",
    }
