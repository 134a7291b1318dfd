"""The stacked bars of where a request's time goes: a panel for each batch and level, a bar for each way."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from reports.format import NS_PER_MS
from reports.page.chart import Chart, rounded
from reports.page.disclosures import disclosures
from reports.page.grid import Runs, resting_on
from reports.study.study_reports import Study
from reports.summary.breakdown import PARTS, parts_of
from reports.summary.summary import Summary

TITLE = "Latency by its parts"
CAPTION = (
    "Mean milliseconds of a request, endpoint by endpoint; a panel for each batch and load, each with a "
    "scale of its own. The parts of a bar add up to its mean latency; docs/attribution.md defines them."
)
PARTIAL = "Of some cells, repeats that know fewer parts than others are left out."
NEGATIVE = "A part below 0, where the others overlap, is drawn to the left of the axis."
LOST = "Not drawn, as no request succeeded"
DOUBTED = "*: rests on disqualified runs alone; the table says why."


def breakdown_chart(study: Study) -> Chart | None:
    """The chart; None where no request of any run succeeded."""
    cells = list(_cells(study))
    panels = [_panel(study, key, cells) for key in sorted({_key(runs[0]) for runs in cells})]
    shown = [
        name for name in PARTS if any(bar["parts"].get(name) for panel in panels for bar in panel["bars"])
    ]
    if not shown:
        return None
    parts = [{"name": name, "label": name.replace("_", " ")} for name in shown]
    bars = [bar for panel in panels for bar in panel["bars"]]
    notes = [
        *([DOUBTED] if any(bar["doubted"] for bar in bars) else []),
        *([PARTIAL] if any(bar["partial"] for bar in bars) else []),
        *([NEGATIVE] if any(ms < 0 for bar in bars for ms in bar["parts"].values()) else []),
    ]
    drawn = {runs[0].cell for runs in cells}
    lost = dict.fromkeys(run.cell for run in study.started if not run.is_floor and run.cell not in drawn)
    notes += [f"{LOST}: {', '.join(lost)}."] if lost else []
    caption = " ".join((CAPTION, *disclosures(study, study.endpoints)))
    return Chart(TITLE, caption, "breakdown", {"parts": parts, "panels": panels}, notes=tuple(notes))


def _cells(study: Study) -> Iterator[Runs]:
    """The repeats of each cell that has a mean latency, ways in the study's order; no floors."""
    known: dict[str, list[Summary]] = {}
    for run in study.started:
        if run.latency_mean_ns is not None and not run.is_floor:
            known.setdefault(run.cell, []).append(run)
    yield from sorted(known.values(), key=lambda runs: study.ways.index(runs[0].way))


def _key(run: Summary) -> tuple[bool, str, float, int]:
    """What a panel is for: serial ones first, then closed and open loads by level, batch by batch."""
    return not run.serial, run.load, run.level, run.batch


def _panel(study: Study, key: tuple[bool, str, float, int], cells: Sequence[Runs]) -> dict[str, Any]:
    here = [runs for runs in cells if _key(runs[0]) == key]
    _, load, level, batch = key
    users = "1 user" if level == 1 else f"{level:g} users"
    title = f"batch {batch}, {users if load == 'closed' else f'{level:g} requests/s'}"
    return {"title": title, "bars": [_bar(study, runs) for runs in here]}


def _bar(study: Study, runs: Runs) -> dict[str, Any]:
    """The means over the repeats that count and that know the same parts, the most, so that they add up."""
    counted = resting_on(runs, lambda run: run.latency_mean_ns)
    known = [{part.name: part.ns for part in parts_of(run) if part.ns is not None} for run in counted]
    most = max(known, key=len)
    found = [parts for parts in known if parts.keys() == most.keys()]
    parts = {name: fmean(run[name] for run in found) / NS_PER_MS for name in most}
    doubted = all(run.tainted for run in counted)
    name = study.named(runs[0].way)
    return {
        "name": name,
        "doubted": doubted,
        "partial": len(counted) - len(found),
        "parts": {name: rounded(ms) for name, ms in parts.items() if ms},
    }
