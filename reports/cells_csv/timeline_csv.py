"""timeline.csv: one row for each second of every run, columns as others parse them."""

from reports.cells_csv.csv_text import column_of, csv_text
from reports.study.study_reports import Study

COLUMNS = tuple(
    """t_s utc cell repeat phase endpoint requests_per_s images_per_s failures_per_s latency_p50_ms
    latency_p95_ms latency_p99_ms in_flight users worker_cpu_pct loop_lag_ms server_queue_ms server_compute_ms
    executed_batch pending_requests gpu_util_pct gpu_memory_bytes gpu_power_w gpu_sm_clock_mhz host_cpu_pct
    tx_bytes_per_s rx_bytes_per_s""".split()  # noqa: SIM905
)


def render_timeline(study: Study) -> str:
    """The whole file; empty where a column is unknown."""
    return csv_text(COLUMNS, ([column_of(second, column) for column in COLUMNS] for second in study.timeline))
