"""cells.csv: one row for each run that was begun, columns as others parse them."""

from reports.render.csv_text import column_of, csv_text
from reports.study import Study
from reports.summary import Summary
from reports.tables.runs import codes

COLUMNS = tuple(
    """study cell repeat endpoint backend protocol payload batch load level workers hosts channels
    tcp_connections link requests failures abandoned images measure_s requests_per_s images_per_s
    offered_per_s latency_mean_ms latency_p50_ms latency_p90_ms latency_p95_ms latency_p99_ms
    latency_p999_ms latency_max_ms service_p50_ms service_p95_ms service_p99_ms send_delay_p99_ms
    encode_ms send_ms wait_ms receive_ms decode_ms server_ms server_queue_ms server_compute_ms network_ms
    unexplained_ms request_bytes response_bytes executed_batch worker_cpu_pct loop_lag_p99_ms gpu_util_pct
    gpu_memory_bytes gpu_power_w images_per_usd joules_per_image limit caveats""".split()  # noqa: SIM905
)


def render_csv(study: Study) -> str:
    """The whole file; empty where a column is unknown."""
    return csv_text(COLUMNS, ([_value(study, run, column) for column in COLUMNS] for run in study.started))


def _value(study: Study, run: Summary, column: str) -> object:
    if column == "study":
        return study.header["study"]
    if column == "limit":
        return run.limit.code if run.limit else None
    return codes(run, ";") if column == "caveats" else column_of(run, column)
