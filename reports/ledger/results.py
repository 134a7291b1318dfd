"""results.parquet, which lies beside a ledger: its columns, one row for each single Result that was kept."""

FILE_NAME = "results.parquet"
FIRST_PHASES = ("encode", "send", "wait", "receive", "decode", "connect")
LATER_PHASES = ("stream_wait", "flow_wait")
PHASES = (*FIRST_PHASES, *LATER_PHASES)
FIRST_NUMBERS = (
    "user", "images", "intended_utc_ns", "send_delay_ns", "service_ns",
    *(f"{phase}_ns" for phase in FIRST_PHASES), "server_ns", "request_bytes", "response_bytes",
)  # fmt: skip
OTHERS = ("error", "abandoned", "request_id")
LATER_NUMBERS = tuple(f"{phase}_ns" for phase in LATER_PHASES)
LATER_TEXTS = ("request_class", "trace_id")
"""Columns at the end, which older files do not have."""
NUMBERS = (*FIRST_NUMBERS, *LATER_NUMBERS)
"""Columns of whole numbers, empty where unknown, beside cell, repeat, worker and the others."""
COLUMNS = ("cell", "repeat", "worker", *FIRST_NUMBERS, *OTHERS, *LATER_NUMBERS, *LATER_TEXTS)
