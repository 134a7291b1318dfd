"""The table of open load: what was asked for, what was offered, and how long it took."""

from collections.abc import Sequence
from dataclasses import replace

from reports.caveats.run import ENOUGH
from reports.format import MISSING, known, plural
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import Runs, number, repeats, resting_on, typical
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.payloads.matrix import images_per_s

HEADS = (
    *("endpoint", "batch", "arrivals", "asked/s", "offered/s", "images/s"),
    *("p50 ms", "p95 ms", "p99 ms", "late", "dropped"),
)


def open_load(study: Study) -> Table:
    """One row for each cell with open load, medians over its repeats."""
    notes = Notes()
    cells = open_cells(study)
    rows = tuple(_row(study, runs, notes) for runs in cells)
    said = disclosures(study, (runs[0].endpoint for runs in cells))
    return Table(
        "Open load",
        "Requests are sent at a rate, whatever becomes of them; latency counts from the intended start.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset({1, *range(3, len(HEADS))}),
        shared=(repeats(study), *(text for text in said if text not in notes.texts)),
    )


def open_cells(study: Study) -> list[Runs]:
    """The repeats of each cell with open load at one rate but floors, by endpoint, batch, arrivals, rate."""
    cells: dict[str, list[Summary]] = {}
    for run in study.runs:
        if run.load == "open" and not run.is_floor and not run.profile:
            cells.setdefault(run.cell, []).append(run)
    return sorted(cells.values(), key=lambda runs: _place(study, runs[0]))


def _place(study: Study, run: Summary) -> tuple[int, int, str, float]:
    return study.ways.index(run.way), run.batch, run.arrivals, run.level


def _row(study: Study, runs: Sequence[Summary], notes: Notes) -> tuple[Cell, ...]:
    first = runs[0]
    said = stand_in(study, first.endpoint)
    offered = typical(runs, lambda run: run.offered_per_s)
    return (
        Cell(study.named(first.way), notes.marks([said] if said else [])),
        Cell(str(first.batch)),
        Cell(first.arrivals or MISSING),
        Cell(f"{first.level:g}"),
        Cell(known(offered)),
        number(runs, images_per_s, notes),
        *(latency(runs, percentile, notes) for percentile in ("p50", "p95", "p99")),
        _count(typical(runs, lambda run: run.late)),
        _count(typical(runs, lambda run: run.dropped)),
    )


def _count(value: float | None) -> Cell:
    return Cell(MISSING if value is None else f"{round(value):,}")


def latency(runs: Runs, percentile: str, notes: Notes) -> Cell:
    """A percentile in milliseconds, marked for disqualified runs and for too few results behind it."""
    cell = number(runs, lambda run: latency_ms(run, percentile), notes)
    behind = [run.succeeded for run in resting_on(runs, lambda run: latency_ms(run, percentile))]
    if min(behind, default=0) >= ENOUGH[percentile] or cell.value is None:
        return cell
    few = f"few-samples: {percentile} needs {plural(ENOUGH[percentile], 'result')}"
    return replace(cell, marks=tuple(sorted({*cell.marks, *notes.marks([few])})))


def latency_ms(run: Summary, percentile: str) -> float | None:
    """Latency at p50, p90, p95, p99 or p99.9 in milliseconds."""
    value_ns: float | None = getattr(run, f"latency_{percentile.replace('.', '')}_ns")
    return None if value_ns is None else value_ns / 1e6
