"""The table of floors: the same requests with no model behind them, beside those with one."""

from collections.abc import Mapping

from reports.page.disclosures import FLOOR, disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s, latency_ms
from reports.stats.repeats import Runs, repeats
from reports.study.study import Study
from reports.summary.summary import FLOOR_SUFFIX, Summary

HEADS = ("cell", "p50 ms", "floor's", "images/s", "floor's")
Key = tuple[str, str, int, str, str, float]


def floors(study: Study) -> Table:
    """One row for each cell that has a floor, medians over the repeats of both."""
    notes = Footnotes()
    by_key = _by_key(study)
    pairs = [(runs, by_key[_twin(key)]) for key, runs in by_key.items() if _twin(key) in by_key]
    rows = tuple(_row(study, runs, floor, notes) for runs, floor in pairs)
    said = disclosures(study, (runs[0].endpoint for runs, _ in pairs))
    return Table(
        "Floor",
        "Each cell beside the same requests with no model behind them.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(HEADS))),
        shared=(repeats(study), FLOOR, *(text for text in said if text not in notes.texts)),
    )


def _by_key(study: Study) -> Mapping[Key, list[Summary]]:
    """The repeats of each cell by way, batch and load, in the order of the ways."""
    found: dict[Key, list[Summary]] = {}
    for run in sorted(study.runs, key=lambda run: study.ways.index(run.way)):
        key = (*run.way, run.batch, run.load, run.arrivals, run.level)
        found.setdefault(key, []).append(run)
    return found


def _twin(key: Key) -> Key:
    """The key of a cell's floor."""
    return (f"{key[0]}{FLOOR_SUFFIX}", *key[1:])


def _row(study: Study, runs: Runs, floor: Runs, notes: Footnotes) -> tuple[TableCell, ...]:
    said = stand_in(study, runs[0].endpoint)
    head = TableCell(runs[0].cell, notes.marks([said] if said else []))
    sides = [number(side, value, notes) for value in (latency_ms, images_per_s) for side in (runs, floor)]
    return head, *sides
