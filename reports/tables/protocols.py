"""gRPC over HTTP as a heat map: every batch and load that both carried, with the interval of the repeats."""

from collections.abc import Iterator, Sequence
from math import log2

from reports.analysis.log_ratio import LogRatio, log_ratio
from reports.format import MISSING
from reports.study import Study
from reports.summary import Summary
from reports.tables.disclosures import disclosures, stand_in
from reports.tables.grid import Runs, absence, resting_on, taints
from reports.tables.seeds import images_per_s, protocol_pairs
from reports.tables.table import Cell, Notes, Table
from reports.way import Way

FULL_HEAT = 2.0
"""The ratio, or one over it, that is shaded fully."""
ONE_RUN = "one run on a side: no interval, so this may be chance"
MORE, LESS = "▲", "▼"
TITLE = "gRPC over HTTP, with its interval"
CAPTION = (
    "Ratio of images per second (geometric means of the repeats), and in brackets where it lies with 95 % "
    "confidence (Welch's t of the logs). ▲: gRPC is faster, ▼: HTTP is faster, each with an interval that "
    "leaves 1 out; without either mark the two were not told apart. Shaded, by the ratio, where they were."
)


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users in closed load, one column for each batch."""
    notes = Notes()
    closed = [run for run in study.runs if run.load == "closed" and not run.is_floor]
    pairs = protocol_pairs(study, closed)
    paired = [run for run in closed if any(run.way in pair for pair in pairs.values())]
    batches = sorted({run.batch for run in paired})
    rows = tuple(
        row for name, pair in pairs.items() for row in _rows(study, name, pair, paired, batches, notes)
    )
    said = disclosures(study, (run.endpoint for run in paired))
    heads = ("backend", "users", *(f"batch {batch}" for batch in batches))
    shared = tuple(text for text in said if text not in notes.texts)
    return Table(TITLE, CAPTION, heads, rows, notes.texts, frozenset(range(1, len(heads))), shared)


def _rows(
    study: Study, name: str, pair: tuple[Way, Way], runs: Runs, batches: Sequence[int], notes: Notes
) -> Iterator[tuple[Cell, ...]]:
    """Those of one pair, by users."""
    said = [text for way in pair if (text := stand_in(study, way.endpoint))]
    here = [run for run in runs if run.way in pair]
    for level in sorted({run.level for run in here}):
        at = [run for run in here if run.level == level]
        cells = (_cell([run for run in at if run.batch == batch], pair, notes) for batch in batches)
        yield Cell(name, notes.marks(said)), Cell(f"{level:g}"), *cells


def _cell(runs: Sequence[Summary], pair: tuple[Way, Way], notes: Notes) -> Cell:
    """The ratio of one batch and load; empty where none was planned, a dash where a side has no figure."""
    if not runs:
        return Cell("")
    sides = [[run for run in runs if run.way == way] for way in pair]
    counted = [resting_on(side, images_per_s) for side in sides]
    lacking = [side for side, known in zip(sides, counted, strict=True) if not known]
    if lacking:
        return Cell(MISSING, notes.marks([absence(lacking[0])]))
    http, grpc = ([run.images_per_s or 0.0 for run in side] for side in counted)
    found = log_ratio(grpc, http)
    doubts = [*taints([*counted[0], *counted[1]]), *([ONE_RUN] if found.low is None else [])]
    return Cell(
        shown(found),
        notes.marks(doubts),
        found.ratio,
        heat=heat_of(found.ratio) if found.significant else None,
    )


def shown(found: LogRatio) -> str:
    """▲ 1.41× (1.32–1.51)."""
    mark = "" if not found.significant else f"{MORE} " if found.ratio > 1 else f"{LESS} "
    return f"{mark}{found.times}"


def heat_of(ratio: float) -> float:
    """How a ratio is shaded, from -1 to 1: its logarithm, full at twice as much and at half."""
    return max(-1.0, min(1.0, log2(ratio) / log2(FULL_HEAT)))
