"""Where the time went and what was in the way: a row for each run, and a bar for each way."""

from collections.abc import Iterable, Iterator, Sequence
from math import floor, log10
from statistics import fmean
from typing import Any

from reports.format import MISSING, NS_PER_MS
from reports.page.chart import Chart, rounded
from reports.page.disclosures import disclosures
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.repeats import Runs, resting_on
from reports.study.study import Study
from reports.summary.breakdown import PARTS, Part, parts_of
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_head

HEADS = {
    "send_delay": ("delay", "send delay"),
    "encode": ("enc", "encode"),
    "send": ("send", "send"),
    "network": ("net", "network"),
    "server_queue": ("queue", "the server's queue"),
    "server_compute": ("comp", "its compute"),
    "server_other": ("other", "its other parts"),
    "receive": ("recv", "receive"),
    "decode": ("dec", "decode"),
    "unexplained": ("unexpl", "unexplained"),
}
"""The head of each part's column, short since there are many, and what the caption calls it."""
NO_SERVER = "the server's parts are not known: unexplained holds its time"
NO_PATH = "the connections were not looked at: unexplained holds the network's time"
TITLE = "Latency by its parts"
CAPTION = (
    "Mean milliseconds of a request, endpoint by endpoint; a panel for each batch and load, each with a "
    "scale of its own. The parts of a bar add up to its mean latency; docs/attribution.md defines them."
)
PARTIAL = "Of some cells, repeats that know fewer parts than others are left out."
NEGATIVE = "A part below 0, where the others overlap, is drawn to the left of the axis."
LOST = "Not drawn, as no request succeeded"
DOUBTED = "*: rests on disqualified runs alone; the table says why."


def in_the_way(study: Study) -> Table:
    """One row for each run that has a limit, with the evidence; the advice is a note, since many share it."""
    notes = Footnotes()
    rows = tuple(
        (
            run_head(study, run, notes),
            TableCell(run.limit.code, notes.marks([run.limit.advice])),
            TableCell(run.limit.evidence),
        )
        for run in study.started
        if run.limit
    )
    return Table(
        "What is in the way",
        "The one thing that keeps each run from going faster, by what was measured; below, what would help.",
        ("run", "limit", "evidence"),
        rows,
        notes.texts,
        shared=_unsaid(study, notes),
    )


def where_the_time_goes(study: Study) -> Table:
    """One row for each run with a success: its mean latency and the parts that add up to it."""
    notes = Footnotes()
    runs = [run for run in study.started if run.latency_mean_ns is not None]
    names = _measured(map(parts_of, runs))
    rows = tuple((run_head(study, run, notes), *_numbers(run, names, notes)) for run in runs)
    heads = ("run", "mean", *(HEADS[name][0] for name in names), "%")
    legend = [f"{head}: {said}" for head, said in map(HEADS.__getitem__, names) if head != said]
    return Table(
        "Where the time goes",
        "Milliseconds of a request's mean latency; a row's parts add up to it. "
        f"{'; '.join([*legend, '%: the unexplained share'])}.",
        heads,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(heads))),
        shared=_unsaid(study, notes),
    )


def _unsaid(study: Study, notes: Footnotes) -> tuple[str, ...]:
    said = disclosures(study, (run.endpoint for run in study.started))
    return tuple(text for text in said if text not in notes.texts)


def _measured(found: Iterable[Sequence[Part]]) -> list[str]:
    """The parts that some run measured, in the order of the sum: a column of dashes tells nothing."""
    known = {part.name for parts in found for part in parts if part.ns is not None}
    return [name for name in PARTS if name in known]


def _numbers(run: Summary, names: Sequence[str], notes: Footnotes) -> list[TableCell]:
    mean_ns = run.latency_mean_ns or 0.0
    parts = {part.name: part for part in parts_of(run)}
    texts = [aligned_ms(parts[name].ns, mean_ns) for name in names]
    lacking = {NO_SERVER: run.server_ns is None, NO_PATH: run.network_ns is None}
    share = parts["unexplained"].share
    marks = notes.marks(text for text, is_lacking in lacking.items() if is_lacking)
    percent = TableCell(MISSING if share is None else f"{round(100 * share)}", marks)
    return [TableCell(aligned_ms(mean_ns, mean_ns)), *map(TableCell, texts), percent]


def aligned_ms(value_ns: float | None, mean_ns: float) -> str:
    """Milliseconds with the decimals of the mean they are a part of: four digits of it, at most to the µs.

    So the numbers of a row can be added up by eye.
    """
    if value_ns is None:
        return MISSING
    mean_ms = mean_ns / NS_PER_MS
    decimals = min(3, max(0, 3 - floor(log10(mean_ms)))) if mean_ms > 0 else 0
    rounded = round(value_ns / NS_PER_MS, decimals) + 0.0  # no -0.00
    return f"{rounded:,.{decimals}f}"


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
