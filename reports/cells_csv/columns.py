"""cells.csv, a row for each run, classes.csv and timeline.csv: columns that others parse."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from reports.fold.timeline import TimelineSecond
from reports.ledger.axes import Axes, of_trait, recorded
from reports.ledger.records import LATER
from reports.study.study import Study
from reports.summary.classes import ClassFigures
from reports.summary.summary import CellFields, Summary, codes, users_busy

Figure = Callable[[Any], object]
_FORMULA = re.compile(r"[=+\-@\t\r]")


def figures(part: str, names: str, prefix: str = "") -> dict[str, Figure]:
    """How to read some attributes of a part by the names that columns have; one in `_ms` from its `_ns`."""
    paths = {f"{prefix}{name}": f"{part}.{name}".lstrip(".") for name in names.split()}
    return {name: in_ms(path) if path.endswith("_ms") else attrgetter(path) for name, path in paths.items()}


def in_ms(path: str) -> Figure:
    """How to read what stands in `_ns` in its place."""
    return in_unit(f"{path.removesuffix('_ms')}_ns", 1e6)


def in_unit(path: str, unit: float) -> Figure:
    """How to read a number in units of so many."""
    found = attrgetter(path)
    return lambda thing: None if (value := found(thing)) is None else value / unit


SINCE = {name: "shares" if name == "server" else name for name in LATER}
"""Columns that older files do not have, and the fields that they are of."""
CELLS: Mapping[str, Callable[[Summary], object]] = {
    **figures("", "cell repeat endpoint backend protocol payload batch load level workers hosts channels"),
    **figures("", "tcp_connections link"),
    **figures("counts", "requests failures abandoned images"),
    "measure_s": in_unit("counts.measure_ns", 1e9),
    **figures("counts", "requests_per_s images_per_s"),
    **figures("sent", "offered_per_s"),
    **figures("latency", "mean_ms p50_ms p90_ms p95_ms p99_ms p999_ms max_ms", prefix="latency_"),
    **figures("service", "p50_ms p95_ms p99_ms", prefix="service_"),
    **figures("send_delay", "p99_ms", prefix="send_delay_"),
    **figures("phases", "encode_ms send_ms wait_ms receive_ms decode_ms"),
    "server_ms": in_ms("server.total_ms"),
    **figures("server", "queue_ms compute_ms", prefix="server_"),
    **figures("", "network_ms unexplained_ms"),
    **figures("counts", "request_bytes response_bytes"),
    **figures("server", "executed_batch"),
    **figures("generator", "worker_cpu_pct loop_lag_p99_ms"),
    **figures("gpu", "util_pct memory_bytes power_w", prefix="gpu_"),
    **figures("cost", "images_per_usd joules_per_image"),
    "limit": lambda run: run.limit and run.limit.code,
    "caveats": lambda run: codes(run, ";"),
    "stand_in": attrgetter("facts.stand_in"),
    **{column: attrgetter(name) for column, name in SINCE.items()},
    **figures("phases", "connect_ms"),
    **figures("counts", "connects_per_request"),
    **figures("", "network_most_ms"),
    "users_busy": users_busy,
    **figures("phases", "stream_wait_ms flow_wait_ms"),
    **{name: attrgetter(name) for name in of_trait("column")},
    "slo": attrgetter("goodput.slo"),
    **figures("goodput", "share per_s", prefix="goodput_"),
    "cache_hit_share": attrgetter("server.cache_share"),
}
"""The columns of cells.csv after the study's name, and what a run has in each; None where it is unknown."""
COLUMNS = ("study", *CELLS)
NAMED = ("study", "cell", *(one.name for one in fields(CellFields) if one.name not in SINCE.values()))
"""Those by which a run is told from others of any study; files of now have those of `LATER`, too."""
_TEXTS = {name for name, unset in recorded(Axes()).items() if isinstance(unset, str)}
WORDS = frozenset({*NAMED, *LATER, *_TEXTS, "limit", "caveats", "stand_in", "slo"}) - {"batch", "level"}
NUMBERS = tuple(column for column in COLUMNS if column not in WORDS)
CLASSES: Mapping[str, Callable[[ClassFigures], object]] = {
    "class": attrgetter("label"),
    **figures("", "requests failures images share asked"),
    **figures("latency", "mean_ms p50_ms p90_ms p95_ms p99_ms max_ms", prefix="latency_"),
    **figures("service", "p50_ms p95_ms p99_ms", prefix="service_"),
    **figures("", "goodput_share"),
}
"""Those of classes.csv after study, cell and repeat: a row for each class of requests of a run."""
TIMELINE: Mapping[str, Callable[[TimelineSecond], object]] = {
    **figures("", "t_s utc cell repeat phase endpoint requests_per_s images_per_s failures_per_s"),
    **figures("", "latency_p50_ms latency_p95_ms latency_p99_ms in_flight users worker_cpu_pct loop_lag_ms"),
    **figures("", "server_queue_ms server_compute_ms executed_batch pending_requests"),
    **figures("", "gpu_util_pct gpu_memory_bytes gpu_power_w gpu_sm_clock_mhz host_cpu_pct"),
    **figures("", "tx_bytes_per_s rx_bytes_per_s goodput_per_s"),
}
"""Those of timeline.csv, likewise."""


def render_csv(study: Study) -> str:
    """The whole of cells.csv."""
    return csv_text(COLUMNS, cell_rows(study))


def cell_rows(study: Study) -> Iterator[Sequence[object]]:
    """The values of COLUMNS for each run that was begun, in run order; None where one is unknown."""
    return ([study.header["study"], *(of(run) for of in CELLS.values())] for run in study.started)


def render_classes(study: Study) -> str:
    """The whole of classes.csv; empty where the requests of every cell are alike."""
    rows = [
        (study.header["study"], run.cell, run.repeat, *(of(one) for of in CLASSES.values()))
        for run in study.started
        for one in run.classes
    ]
    return csv_text(("study", "cell", "repeat", *CLASSES), rows) if rows else ""


def render_timeline(study: Study) -> str:
    """The whole of timeline.csv."""
    return csv_text(tuple(TIMELINE), timeline_rows(study))


def timeline_rows(study: Study) -> Iterator[Sequence[object]]:
    """The values of TIMELINE for each second of every run; None where one is unknown."""
    return ([of(second) for of in TIMELINE.values()] for second in study.timeline)


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Heads and rows; None becomes an empty field, and what a spreadsheet would compute stays a text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_safe(value) for value in row] for row in rows)
    return out.getvalue()


def _safe(value: object) -> object:
    """A number to six decimals; a text with `'` before it where it begins like a formula."""
    if not isinstance(value, str):
        return round(value, 6) if isinstance(value, float) else value
    # Python's writer leaves a carriage return unquoted, which then ends the row.
    return ("'" if _FORMULA.match(value) else "") + value.replace("\r", " ")
