"""The frames of a study: what its CSV files hold, by the same code, with types and with doubts beside."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pandas import DataFrame

from reports.cells_csv.columns import (
    COLUMNS,
    TIMELINE,
    WORDS,
    cell_rows,
    figures,
    in_unit,
    timeline_rows,
)
from reports.frames.requests import read_requests
from reports.ledger.ledger import FILE_NAME, damage_refused
from reports.page.disclosures import disclosures, guessed, silent_said
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, Value, by_cell, resting_on, spread_of
from reports.study.study import Study, load_study, notices
from reports.summary.summary import LatencyAt
from reports.topics.runs.workers import hints

MEASURES: Mapping[str, Value] = {
    "images_per_s": images_per_s,
    **{f"latency_{name}_ms": LatencyAt(name) for name in ("p50", "p95", "p99")},
}
"""Columns of cells.csv that have the repeats' median, lowest and highest beside them."""
DOUBTS = ("disqualified", *(f"{name}_{end}" for name in MEASURES for end in ("median", "low", "high")))
SHARES = {
    **figures("", "users requests failures images"),
    "phase_s": in_unit("phase_ns", 1e9),
    **figures("", "images_per_s latency_p50_ms latency_p95_ms latency_p99_ms cpu_pct loop_lag_p99_ms"),
    **figures("", "tcp_connections"),
}
"""Columns of a worker's share of a run."""
WORKER_COLUMNS = ("cell", "repeat", "endpoint", "worker", *SHARES, "doubts")
TEXTS = frozenset({"caveats", "doubts"})
NAMES = (WORDS | {"phase", "worker"}) - TEXTS
WHOLE = frozenset(
    """repeat batch workers hosts tcp_connections requests failures abandoned images t_s in_flight users
    pending_requests""".split()  # noqa: SIM905
)


@dataclass(frozen=True, eq=False, repr=False)
class Frames:
    """A study as frames of pandas. Columns have the names, order and units that they have in its files.

    `cells`: one row for each run that was begun, in run order, with the columns of cells.csv; then
    `disqualified`, whether a caveat disqualifies the run, and for images_per_s and each of latency_p50_ms,
    latency_p95_ms and latency_p99_ms the `_median`, `_low` and `_high` of its cell: the median, lowest and
    highest of the repeats that count: all that are not disqualified, or all where each is. A single one has
    no lowest and highest. The report has instead the geometric mean of images per second, and percentiles of
    all requests of these repeats together.

    `timeline`: one row for each second of every run, in run order, with the columns of timeline.csv.

    `workers`: one row for each worker of each run, as in the report's table of workers: `cell, repeat,
    endpoint, worker`, then by the worker's own records of the measure phase `users, requests, failures,
    images, phase_s, images_per_s, latency_p50_ms, latency_p95_ms, latency_p99_ms, cpu_pct` (of one core),
    `loop_lag_p99_ms, tcp_connections`, and `doubts`, what sets it apart from the others, joined by `; `.

    `notices` are sentences on the study as a whole, to be read before any number: how it ended, what was
    guessed of endpoints, what stands in for something else, whether seconds were merged in `timeline`.

    Counts are Int64, `utc` datetime64[ns, UTC], `disqualified` bool, names (cell, endpoint, limit, …)
    category, texts (caveats, doubts) str, all other columns float64. What is not known is <NA>, NaN, or an
    empty text.
    """

    cells: DataFrame
    timeline: DataFrame
    workers: DataFrame
    notices: tuple[str, ...]
    directory: Path

    def __repr__(self) -> str:
        """How much there is, and the notices: what is shown where a study is typed into a notebook."""
        frames = {"cells": self.cells, "timeline": self.timeline, "workers": self.workers}
        rows = ", ".join(f"{len(frame):,} of {name}" for name, frame in frames.items())
        return "\n".join((f"{self.directory}: rows: {rows}", *self.notices))

    @cached_property
    def requests(self) -> DataFrame:
        """The single requests that were kept, with the columns of results.parquet; no row where none were.

        One row for each request of a measure phase: `cell, repeat, worker` (category and Int64), `user`,
        `images`, `intended_utc_ns` (datetime64[ns, UTC]), `send_delay_ns, service_ns`, whose sum is the
        latency, `encode_ns, send_ns, wait_ns, receive_ns, decode_ns, connect_ns, server_ns, request_bytes,
        response_bytes` (Int64, <NA> where unknown, or no connection was made), `error` (category, empty for a
        success), `abandoned` (bool), `request_id` (str), and of gRPC calls that the suite writes itself
        `stream_wait_ns, flow_wait_ns` (Int64, <NA> for all others), and `request_class` (category, empty
        where a cell's requests are all alike). Read when first asked for; LedgerError
        where the file cannot be read.
        """
        return read_requests(self.directory)


def frames_of(directory: Path | str, usd_per_hour: float | None = None) -> Frames:
    """The frames of one result directory; LedgerError where its ledger cannot be read."""
    folder = Path(directory)
    with damage_refused(folder / FILE_NAME):
        study = load_study(folder, usd_per_hour)
        return Frames(
            cells=frame((*COLUMNS, *DOUBTS), _with_doubts(study)),
            timeline=frame(tuple(TIMELINE), timeline_rows(study)),
            workers=frame(WORKER_COLUMNS, _worker_rows(study)),
            notices=(
                *(*notices(study), *guessed(study)),
                *(*disclosures(study, study.endpoints), *silent_said(study)),
            ),
            directory=folder,
        )


def frame(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """Rows as a frame, each column of the type that belongs to its name."""
    made = DataFrame(list(rows), columns=list(columns), dtype=object)
    words = [name for name in columns if name in NAMES | TEXTS]
    made[words] = made[words].fillna("").astype("str")
    return made.astype({name: _type_of(name) for name in columns})


def _type_of(column: str) -> str:
    if column in NAMES:
        return "category"
    if column in TEXTS:
        return "str"
    if column in WHOLE:
        return "Int64"
    return {"utc": "datetime64[ns, UTC]", "disqualified": "bool"}.get(column, "float64")


def _with_doubts(study: Study) -> Iterator[Sequence[object]]:
    """The rows of cells.csv with DOUBTS at their ends."""
    around = {cell: tuple(_around(runs)) for cell, runs in by_cell(study.started).items()}
    for run, row in zip(study.started, cell_rows(study), strict=True):
        yield (*row, run.tainted, *around[run.cell])


def _around(runs: Runs) -> Iterator[float | None]:
    """Median, lowest and highest of the repeats of a cell, for each of MEASURES; a single run has no ends."""
    for value in MEASURES.values():
        found = spread_of(resting_on(runs, value), value)
        ends = (found.low, found.high) if found and found.runs > 1 else (None, None)
        yield from (found.median if found else None, *ends)


def _worker_rows(study: Study) -> Iterator[Sequence[object]]:
    for run in study.started:
        for place, share in enumerate(run.per_worker):
            others = (*run.per_worker[:place], *run.per_worker[place + 1 :])
            numbers = (of(share) for of in SHARES.values())
            doubts = "; ".join(hints(run.load, share, others))
            yield (run.cell, run.repeat, run.endpoint, share.worker, *numbers, doubts)
