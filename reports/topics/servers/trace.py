"""The table of Triton's own trace: the server's parts of single requests, by percentiles instead of means."""

from collections.abc import Iterator

from reports.fold.server_facts import PARTS, Trace
from reports.format import MISSING, ms
from reports.page.table import Footnotes, Table, TableCell
from reports.study.study import Study
from reports.topics.runs.runs import run_head

HEADS = ("run", "joined", "of", "", *PARTS)
PERCENTS = ("p50", "p95", "p99")


def traced_requests(study: Study) -> Table:
    """Three rows for each run that was traced, one for each percentile."""
    notes = Footnotes()
    rows = tuple(
        row for run in study.started if run.trace for row in _rows(run_head(study, run, notes), run.trace)
    )
    return Table(
        "Triton's trace, request by request",
        "Milliseconds, over the requests that were found in the trace under the ids they were sent with. "
        "Server: from the request whole to the answer's start; outside: the client's wait without it. "
        "Tracing costs the server time: compare these runs with traced ones only.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset({1, 2, *range(4, len(HEADS))}),
        folded=True,
    )


def _rows(head: TableCell, trace: Trace) -> Iterator[tuple[TableCell, ...]]:
    counts = (f"{trace.joined:,}", f"{trace.requests:,}")
    for place, percent in enumerate(PERCENTS):
        front = (TableCell(""),) * 3 if place else (head, *map(TableCell, counts))
        found = (trace.parts.get(part) for part in PARTS)
        texts = [MISSING if part is None else ms(getattr(part, f"{percent}_ns")) for part in found]
        yield (*front, TableCell(percent), *map(TableCell, texts))
