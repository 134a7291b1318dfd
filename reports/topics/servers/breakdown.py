"""Where the time went: a bar for each way, and a row for each run."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from reports.fold.records import ratio
from reports.fold.server_facts import PARTS as SERVER_PARTS
from reports.fold.server_facts import Trace
from reports.format import MISSING, NS_PER_MS, digits, ms
from reports.page.page import Chart, rounded
from reports.page.question import Question
from reports.page.study_table import Columns, StudyNotes, cell, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.conditions import Condition, condition
from reports.stats.repeats import Runs, by_cell, resting_on
from reports.study.study import Study
from reports.summary.summary import UNCLEAR, Part, Summary, shown_parts_of
from reports.topics.runs.runs import RUN, by_name, run_name

HEADS = {
    "send_delay": ("delay", "send delay"),
    "resolve": ("dns", "look-up of the host's name"),
    "connect": ("conn", "connect"),
    "encode": ("enc", "encode"),
    "stream_wait": ("stream", "wait for a free HTTP/2 stream"),
    "flow_wait": ("flow", "wait for an HTTP/2 window to open"),
    "send": ("send", "send"),
    "network": ("net", "network"),
    "server_queue": ("queue", "queue wait at the server"),
    "server_compute": ("comp", "its compute"),
    "server_other": ("other", "its other parts"),
    "receive": ("recv", "receive"),
    "decode": ("dec", "decode"),
    UNCLEAR: ("net?", "network or unexplained"),
    "unexplained": ("unexpl", "unexplained"),
}
"""Each part in the order of the sum: the head of its column, short since there are many, and its name in the
caption."""
LABELS = {"resolve": "name resolution", "server_queue": "queue wait", UNCLEAR: HEADS[UNCLEAR][1]}
RARE, LEAST_SHARE = frozenset({"resolve", "stream_wait", "flow_wait"}), 0.001
"""Parts that have a column only where they are such a share of some run's mean."""
COARSE_MS = 1_000
"""From such a mean on, its parts are whole milliseconds; below, 0.1 ms is the finest."""
PERCENTS = ("p50", "p95", "p99")
PERCENT = "%: the share of all that is unexplained"
CACHED = "hits: the share of what a cache was asked that it answered, in place of the model"
NO_SERVER = "the server's parts are not known: unexplained holds its time"
NO_PATH = "the connections were not looked at: unexplained holds the network's time"
TITLE = "Latency by its parts"
CAPTION = (
    "Mean milliseconds of a request, endpoint by endpoint; a panel for each batch and load, all on one "
    "scale. The parts of a bar add up to its mean latency; docs/attribution.md defines them."
)
RANGE = (
    "Network: what is proven to be the network's; network or unexplained: what may be the network's as well, "
    "and counts as unexplained."
)
"""What the two parts mean, wherever both are shown."""
PARTIAL = "Of some cells, repeats that know fewer parts than others are left out."
NEGATIVE = "A part below 0, where the others overlap, is drawn to the left of the axis."
LOST = "Not drawn, as no request succeeded"
DOUBTED = "(invalidated): every run behind the bar is invalidated; the table says why."


def where_the_time_goes(study: Study) -> Table:
    """One row for each run with a success: its mean latency and the parts that add up to it."""
    runs = [run for run in by_name(study) if run.latency.mean_ns is not None]
    names = _measured(map(shown_parts_of, runs))
    legend = [f"{head}: {said}" for head, said in map(HEADS.__getitem__, names) if head != said]
    cached = any(run.server.cache_share is not None for run in runs)
    legend += [PERCENT, *([CACHED] if cached else [])]
    heads = ("mean", *(HEADS[name][0] for name in names), "%", *(["hits"] if cached else []))
    return study_table(
        study,
        "Mean latency by its parts, run by run",
        "Milliseconds of a request's mean latency; a row's parts add up to it. "
        f"{'; '.join(legend)}.{f' {RANGE}' if UNCLEAR in names else ''}",
        (RUN, Columns(heads, lambda run, notes: _numbers(run, names, notes)[: len(heads)])),
        runs,
    )


def _measured(found: Iterable[Sequence[Part]]) -> list[str]:
    """The parts that some run measured, in the order of the sum: a column of dashes tells nothing."""
    known = {part.name for parts in found for part in parts if _has_column(part)}
    return [name for name in HEADS if name in known]


def _has_column(part: Part) -> bool:
    return part.ns is not None and (part.name not in RARE or (part.share or 0.0) >= LEAST_SHARE)


def _numbers(run: Summary, names: Sequence[str], notes: StudyNotes) -> list[TableCell | str]:
    mean_ns = run.latency.mean_ns or 0.0
    parts = {part.name: part for part in shown_parts_of(run)}
    unread = run.server.total_ns is None and not run.server.silent
    lacking = {NO_SERVER: unread, NO_PATH: run.network_ns is None}
    share = ratio(run.unexplained_ns, mean_ns)
    marks = notes.marks(text for text, is_lacking in lacking.items() if is_lacking)
    percent = TableCell(MISSING if share is None else f"{round(100 * share)}", marks)
    hits = run.server.cache_share
    return [
        aligned_ms(mean_ns, mean_ns),
        *(aligned_ms(parts[name].ns, mean_ns) for name in names),
        percent,
        MISSING if hits is None else f"{digits(100 * hits)} %",
    ]


def aligned_ms(value_ns: float | None, mean_ns: float) -> str:
    """Milliseconds with the decimals of their mean, so that a row adds up but for rounding."""
    if value_ns is None:
        return MISSING
    decimals = 0 if mean_ns / NS_PER_MS >= COARSE_MS else 1
    rounded = round(value_ns / NS_PER_MS, decimals) + 0.0  # no -0.0
    return f"{rounded:,.{decimals}f}"


def breakdown_chart(study: Study) -> Chart | None:
    """The chart; None where no request of any run succeeded."""
    cells = list(_cells(study))
    panels = [_panel(study, key, cells) for key in sorted({condition(runs[0]) for runs in cells})]
    shown = [
        name for name in HEADS if any(bar["parts"].get(name) for panel in panels for bar in panel["bars"])
    ]
    if not shown:
        return None
    parts = [{"name": name, "label": LABELS.get(name, name.replace("_", " "))} for name in shown]
    bars = [bar for panel in panels for bar in panel["bars"]]
    notes = [
        *([RANGE] if UNCLEAR in shown else []),
        *([DOUBTED] if any(bar["doubted"] for bar in bars) else []),
        *([PARTIAL] if any(bar["partial"] for bar in bars) else []),
        *([NEGATIVE] if any(ms < 0 for bar in bars for ms in bar["parts"].values()) else []),
    ]
    drawn = {runs[0].cell for runs in cells}
    lost = dict.fromkeys(run.cell for run in study.started if not run.is_floor and run.cell not in drawn)
    notes += [f"{LOST}: {', '.join(lost)}."] if lost else []
    return Chart(TITLE, CAPTION, "breakdown", {"parts": parts, "panels": panels}, notes=tuple(notes))


def _cells(study: Study) -> Iterable[Runs]:
    """The repeats of each cell that has a mean latency, ways in the study's order; no floors."""
    known = [run for run in study.started if run.latency.mean_ns is not None and not run.is_floor]
    return by_cell(study.ordered(known)).values()


def _panel(study: Study, key: Condition, cells: Sequence[Runs]) -> dict[str, Any]:
    here = [runs for runs in cells if condition(runs[0]) == key]
    return {"title": str(key), "bars": [_bar(study, runs) for runs in here]}


def _bar(study: Study, runs: Runs) -> dict[str, Any]:
    """The means over the repeats that count and that know the same parts, the most, so that they add up."""
    counted = resting_on(runs, lambda run: run.latency.mean_ns)
    known = [{part.name: part.ns for part in shown_parts_of(run) if part.ns is not None} for run in counted]
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


Percentile = tuple[Summary, Trace, str]
"""A traced run, and which of three percentiles of its requests a row shows."""


def traced_requests(study: Study) -> Table:
    """Three rows for each run that was traced, one for each percentile."""
    columns: Sequence[Columns[Percentile]] = (
        cell("run", lambda row, _: _first(row, TableCell(run_name(row[0]))), numeric=False),
        cell("joined", lambda row, _: _first(row, TableCell(f"{row[1].joined:,}"))),
        cell("of", lambda row, _: _first(row, TableCell(f"{row[1].requests:,}"))),
        text("", lambda row: row[2], numeric=False),
        Columns(SERVER_PARTS, _parts),
    )
    return study_table(
        study,
        "Triton's trace, request by request",
        "Milliseconds, over the requests that were found in the trace under the ids they were sent with. "
        "Server: from the request whole to the answer's start; outside: the client's wait without it. "
        "Tracing costs the server time: compare these runs with traced ones only.",
        columns,
        ((run, run.trace, percent) for run in study.started if run.trace for percent in PERCENTS),
        folded=True,
    )


def _first(row: Percentile, shown: TableCell) -> TableCell:
    """What a run shows once, beside the first of its percentiles."""
    return shown if row[2] == PERCENTS[0] else TableCell("")


def _parts(row: Percentile, _: StudyNotes) -> Iterator[str]:
    found = (row[1].parts.get(part) for part in SERVER_PARTS)
    return (MISSING if part is None else ms(getattr(part, f"{row[2]}_ns")) for part in found)


BREAKDOWN = Question("breakdown", "Latency breakdown", (breakdown_chart, where_the_time_goes), place=1)
TRACE = Question("trace", "Runs", (traced_requests,), place=1)
