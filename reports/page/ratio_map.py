"""A heat map of one way over another: every batch and load that both carried, with the repeats' interval."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from reports.format import MISSING
from reports.page.disclosures import disclosures, stand_in
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.repeats import Runs, absence, resting_on, taints
from reports.study.study import Study
from reports.summary.summary import Summary, Way

FULL_HEAT = 2.0
"""The ratio, or one over it, that is shaded fully."""
ONE_RUN = "one run on a side: no interval, so this may be chance"
MORE, LESS = "▲", "▼"
METHOD = (
    "Ratio of images per second (geometric means of the repeats), and in brackets where it lies with 95 % "
    "confidence (Welch's t of the logs)."
)
TOLD = "each with an interval that leaves 1 out; without either mark the two were not told apart."
SHADED = "Shaded, by the ratio, where they were."
Pair = tuple[Way, Way]
"""What stands under the ratio, and what over it."""


@dataclass(frozen=True)
class RatioMap:
    """What one such table shows; `head` says what its rows are."""

    title: str
    caption: str
    head: str


def closed_runs(study: Study) -> list[Summary]:
    """What can be compared: closed load, no floors."""
    return [run for run in study.runs if run.load == "closed" and not run.is_floor]


def ratio_map(study: Study, about: RatioMap, pairs: Mapping[str, Pair]) -> Table:
    """One row for each pair of ways and number of users in closed load, one column for each batch."""
    notes = Footnotes()
    paired = [run for run in closed_runs(study) if any(run.way in pair for pair in pairs.values())]
    batches = sorted({run.batch for run in paired})
    rows = tuple(
        row for name, pair in pairs.items() for row in _rows(study, name, pair, paired, batches, notes)
    )
    said = disclosures(study, (run.endpoint for run in paired))
    heads = (about.head, "users", *(f"batch {batch}" for batch in batches))
    shared = tuple(text for text in said if text not in notes.texts)
    return Table(
        about.title, about.caption, heads, rows, notes.texts, frozenset(range(1, len(heads))), shared
    )


def compared(runs: Sequence[Summary], pair: Pair) -> LogRatio | None:
    """The ratio of the runs of one batch and load; None where a side has no figure."""
    under, over = ([run.images_per_s or 0.0 for run in side] for side in _counted(runs, pair))
    return log_ratio(over, under) if over and under else None


def _rows(
    study: Study, name: str, pair: Pair, runs: Runs, batches: Sequence[int], notes: Footnotes
) -> Iterator[tuple[TableCell, ...]]:
    """Those of one pair, by users."""
    said = [text for way in pair if (text := stand_in(study, way.endpoint))]
    here = [run for run in runs if run.way in pair]
    for level in sorted({run.level for run in here}):
        at = [run for run in here if run.level == level]
        cells = (_cell([run for run in at if run.batch == batch], pair, notes) for batch in batches)
        yield TableCell(name, notes.marks(said)), TableCell(f"{level:g}"), *cells


def _counted(runs: Sequence[Summary], pair: Pair) -> list[Runs]:
    return [resting_on([run for run in runs if run.way == way], images_per_s) for way in pair]


def _cell(runs: Sequence[Summary], pair: Pair, notes: Footnotes) -> TableCell:
    """The ratio of one batch and load; empty where none was planned, a dash where a side has no figure."""
    if not runs:
        return TableCell("")
    counted, found = _counted(runs, pair), compared(runs, pair)
    if found is None:
        lacking = next(way for way, known in zip(pair, counted, strict=True) if not known)
        return TableCell(MISSING, notes.marks([absence([run for run in runs if run.way == lacking])]))
    doubts = [*taints([*counted[0], *counted[1]]), *([ONE_RUN] if found.low is None else [])]
    return TableCell(
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
