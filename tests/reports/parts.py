"""Summaries by hand: any figure of a part by the name that it has in cells.csv, `_ns` in place of `_ms`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reports.summary.summary import Summary

OF_PART = {
    "counts": "requests failures failure_kinds abandoned images measure_ns requests_per_s images_per_s "
    "request_bytes response_bytes failure_codes refused_for retry_after retry_after_s connects resent",
    "sent": "late due dropped offered",
    "phases": "connect_ns resolve_ns encode_ns stream_wait_ns flow_wait_ns send_ns wait_ns receive_ns "
    "decode_ns",
    "generator": "worker_cpu_pct loop_cpu_pct cpu_wait_pct awake_pct loop_delay_ns loop_lag_p95_ns "
    "loop_lag_p99_ns gc_max_ns in_flight lock_wait_ns cpu_quota throttled_pct "
    "used_up_pct stolen_pct pressure_pct lag_awaited",
    "cost": "images_per_usd joules_per_image",
}
PREFIXED = {
    "latency": "mean_ns p50_ns p90_ns p95_ns p99_ns p999_ns max_ns",
    "service": "mean_ns p50_ns p95_ns p99_ns",
    "send_delay": "mean_ns p95_ns p99_ns",
    "failed": "mean_ns p50_ns",
    "timeout": "mean_ns p50_ns",
    "server": "parts busy",
    "server_cpu": "quota throttled_pct used_up_pct shared stolen_pct",
    "gpu": "util_pct memory_bytes power_w",
}
PLACES = {name: f"{part}.{name}" for part, names in OF_PART.items() for name in names.split()}
PLACES |= {f"{part}_{name}": f"{part}.{name}" for part, names in PREFIXED.items() for name in names.split()}
PLACES |= {"cold_share": "server.cold.share", "cold_batches": "server.cold.batches"}
PLACES |= {"executed_batch": "server.executed_batch"}
OF_SERVER = ("queue", "compute", "other")


def changed(run: Summary, **figures: Any) -> Summary:
    """The run with some fields and figures changed; `server_queue_ns` and its like are parts of the server's.

    None takes such a part out; `server_other_ns` takes the place of all but queue and compute.
    """
    for part in OF_SERVER:
        if (name := f"server_{part}_ns") in figures:
            base = figures.get("server_parts", run.server.parts)
            figures["server_parts"] = with_part(base, part, figures.pop(name))
    return with_values(run, {PLACES.get(name, name): value for name, value in figures.items()})


def with_part(parts: Any, part: str, value: float | None) -> dict[str, float]:
    kept = {name: ns for name, ns in parts.items() if name != part}
    if part == "other":
        kept = {name: ns for name, ns in kept.items() if name in OF_SERVER}
    return kept if value is None else {**kept, part: value}


def with_values(thing: Any, values: Mapping[str, Any]) -> Any:
    """The same with values at paths such as `server.cold.share`; each part is made again once."""
    whole = {path: value for path, value in values.items() if "." not in path}
    of_parts: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        part, _, rest = path.partition(".")
        if rest:
            of_parts.setdefault(part, {})[rest] = value
    parts = {part: with_values(getattr(thing, part), own) for part, own in of_parts.items()}
    return replace(thing, **whole, **parts)
