"""The columns of cells.csv, in the order in which others parse them."""

COLUMNS = tuple(
    """study cell repeat endpoint backend protocol payload batch load level workers hosts channels
    tcp_connections link requests failures abandoned images measure_s requests_per_s images_per_s
    offered_per_s latency_mean_ms latency_p50_ms latency_p90_ms latency_p95_ms latency_p99_ms
    latency_p999_ms latency_max_ms service_p50_ms service_p95_ms service_p99_ms send_delay_p99_ms
    encode_ms send_ms wait_ms receive_ms decode_ms server_ms server_queue_ms server_compute_ms network_ms
    unexplained_ms request_bytes response_bytes executed_batch worker_cpu_pct loop_lag_p99_ms gpu_util_pct
    gpu_memory_bytes gpu_power_w images_per_usd joules_per_image limit caveats""".split()  # noqa: SIM905
)
NAMED = ("study", "cell", "endpoint", "backend", "protocol", "payload", "batch", "load", "level")
"""Those by which a run is told from others of any study."""
WORDS = frozenset({*NAMED, "channels", "link", "limit", "caveats"}) - {"batch", "level"}
NUMBERS = tuple(column for column in COLUMNS if column not in WORDS)
