"""results.parquet, which lies beside a ledger: its columns, one row for each single Result that was kept."""

FILE_NAME = "results.parquet"
PHASES = ("encode", "send", "wait", "receive", "decode", "connect")
NUMBERS = (
    "user", "images", "intended_utc_ns", "send_delay_ns", "service_ns",
    *(f"{phase}_ns" for phase in PHASES), "server_ns", "request_bytes", "response_bytes",
)  # fmt: skip
"""Columns of whole numbers, empty where unknown, beside cell, repeat, worker and OTHERS."""
OTHERS = ("error", "abandoned", "request_id")
COLUMNS = ("cell", "repeat", "worker", *NUMBERS, *OTHERS)
