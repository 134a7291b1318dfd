"""cells.csv, a row for each run, and timeline.csv, one for each second: columns that others parse."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from reports.ledger.axes import Axes, of_trait, recorded
from reports.study.study import Study
from reports.summary.summary import Summary, codes

COLUMNS = tuple(
    """study cell repeat endpoint backend protocol payload batch load level workers hosts channels
    tcp_connections link requests failures abandoned images measure_s requests_per_s images_per_s
    offered_per_s latency_mean_ms latency_p50_ms latency_p90_ms latency_p95_ms latency_p99_ms
    latency_p999_ms latency_max_ms service_p50_ms service_p95_ms service_p99_ms send_delay_p99_ms
    encode_ms send_ms wait_ms receive_ms decode_ms server_ms server_queue_ms server_compute_ms network_ms
    unexplained_ms request_bytes response_bytes executed_batch worker_cpu_pct loop_lag_p99_ms gpu_util_pct
    gpu_memory_bytes gpu_power_w images_per_usd joules_per_image limit caveats""".split()  # noqa: SIM905
) + tuple(of_trait("column"))
NAMED = ("study", "cell", "endpoint", "backend", "protocol", "payload", "batch", "load", "level")
"""Those by which a run is told from others of any study."""
_TEXTS = {name for name, unset in recorded(Axes()).items() if isinstance(unset, str)}
WORDS = frozenset({*NAMED, *_TEXTS, "limit", "caveats"}) - {"batch", "level"}
NUMBERS = tuple(column for column in COLUMNS if column not in WORDS)
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NS_PER = {"ms": 1e6, "s": 1e9}
TIMELINE_COLUMNS = tuple(
    """t_s utc cell repeat phase endpoint requests_per_s images_per_s failures_per_s latency_p50_ms
    latency_p95_ms latency_p99_ms in_flight users worker_cpu_pct loop_lag_ms server_queue_ms server_compute_ms
    executed_batch pending_requests gpu_util_pct gpu_memory_bytes gpu_power_w gpu_sm_clock_mhz host_cpu_pct
    tx_bytes_per_s rx_bytes_per_s""".split()  # noqa: SIM905
)


def render_csv(study: Study) -> str:
    """The whole file; empty where a column is unknown."""
    return csv_text(COLUMNS, cell_rows(study))


def cell_rows(study: Study) -> Iterator[Sequence[object]]:
    """The values of COLUMNS for each run that was begun, in run order; None where one is unknown."""
    return ([value_in(study, run, column) for column in COLUMNS] for run in study.started)


def value_in(study: Study, run: Summary, column: str) -> object:
    """What a run has in one column; None where it is unknown."""
    if column == "study":
        return study.header["study"]
    if column == "limit":
        return run.limit.code if run.limit else None
    return codes(run, ";") if column == "caveats" else column_of(run, column)


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


def column_of(thing: object, column: str) -> object:
    """The attribute of a column's name, or its `_ns` twin in the column's unit; None without either."""
    stem, _, unit = column.rpartition("_")
    value_ns = getattr(thing, f"{stem}_ns", None) if unit in _NS_PER else None
    return getattr(thing, column, None) if value_ns is None else value_ns / _NS_PER[unit]


def render_timeline(study: Study) -> str:
    """The whole file; empty where a column is unknown."""
    return csv_text(TIMELINE_COLUMNS, timeline_rows(study))


def timeline_rows(study: Study) -> Iterator[Sequence[object]]:
    """The values of TIMELINE_COLUMNS for each second of every run; None where one is unknown."""
    return ([column_of(second, column) for column in TIMELINE_COLUMNS] for second in study.timeline)
