"""Summaries of runs with a known limit, built by hand: a healthy one, and changes to it."""

import re
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import reports.limits
from reports.fold.path import Path
from reports.fold.server_facts import Serving
from reports.limit import UNKNOWN, Limit
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.parts import changed

MS = 1_000_000
Changes = dict[str, Any] | None
RULES = "".join(path.read_text() for path in FilePath(*reports.limits.__path__).glob("*.py"))
LIMITS = frozenset({UNKNOWN, *re.findall(r'\bLimit\(\s*"([\w-]+)"', RULES)})
"""Every code that a rule gives."""

SEGMENTS = {"segments_out": 14_000, "segments_in": 9_000, "retransmits": 0, "bytes_retransmitted": 0}
BYTES = {"bytes_sent": 606_000_000, "bytes_received": 2_300_000, "cwnd_bytes": 1_300_000}
RATES = {"delivery_bytes_per_s": 900e6, "wire_bytes_per_s": 121e6}
TRIPS = {"rtt_ns": 0.2 * MS, "min_rtt_ns": 0.02 * MS}
SHARES = {"busy_share": 0.02, "rwnd_share": 0.0, "sndbuf_share": 0.0, "cwnd_share": 1.0}
PATH = Path(asked=4, connections=4, busy_ns=400 * MS, **SEGMENTS, **BYTES, **RATES, **TRIPS, **SHARES)
"""Of connections on a loopback."""
SERVING = Serving(instances=4, max_batch=32, batching=True, batching_delay_ns=0)
WAY = {"endpoint": "emulated-http", "backend": "emulated", "protocol": "http", "payload": "fp32", "batch": 1}
CELL = {"cell": "emulated-http/b1/c4", "load": "closed", "level": 4}
BEGUN = Summary(repeat=1, status="done", workers=1, hosts=1, **WAY, **CELL)
COUNTS = {"requests": 1_000, "failures": 0, "abandoned": 0, "images": 1_000, "executed_batch": 1.0}
COUNTS |= {"requests_per_s": 200.0, "images_per_s": 200.0}
COUNTS |= {"request_bytes": 602_289.0, "response_bytes": 2_199.0}
TIMES_MS = {"measure": 5_000, "latency_mean": 20, "latency_p95": 24, "service_mean": 20, "send_delay_mean": 0}
TIMES_MS |= {"encode": 0, "send": 0.3, "wait": 19, "receive": 0.1, "decode": 0.1, "network": 4.6}
TIMES_MS |= {"unexplained": 0.5, "loop_lag_p95": 0.3, "loop_lag_p99": 0.6}
SERVER = {"queue": 0.2 * MS, "input": 0.1 * MS, "compute": 6.0 * MS, "output": 0.1 * MS}
SHARES_PCT = {"worker_cpu_pct": 20.0, "cpu_wait_pct": 2.0, "host_cpu_pct": 30.0, "in_flight": 4.0}
SERVED = {"client": "prepared", "server_parts": SERVER, "server_busy": 0.3, "cold_share": 0.0, "local": True}
TIMES_NS = {f"{name}_ns": ms * MS for name, ms in TIMES_MS.items()}
HEALTHY = changed(BEGUN, **COUNTS, **TIMES_NS, **SHARES_PCT, **SERVED, path=PATH, serving=SERVING)
"""Four users of four instances that are executing a third of the time: more users would give more."""


def a_run(path: Changes = None, serving: Changes = None, **changes: Any) -> Summary:
    """The healthy run with some fields changed, those of its path and its server's set-up in dicts."""
    parts = {"path": replace(PATH, **path or {}), "serving": replace(SERVING, **serving or {})}
    return changed(HEALTHY, **parts, **changes)


def at_server(queue: float, compute: float, latency: float, **changes: Any) -> Summary:
    """A run that spends milliseconds in the server's queue and its compute, the rest elsewhere."""
    rest = (latency - queue - compute) / 2 * MS
    parts = {"server_parts": {"queue": queue * MS, "compute": compute * MS}}
    whole = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), latency * MS)
    return a_run(**parts | whole | {"network_ns": rest, "unexplained_ns": rest} | changes)


def on_path(network: float, path: dict[str, Any], **changes: Any) -> Summary:
    """A run that spends milliseconds on a long path and 5 at the server; its connections are always busy."""
    wan = {"rtt_ns": 14.5 * MS, "min_rtt_ns": 14.0 * MS, "cwnd_bytes": 66_600.0}
    wan |= {"busy_share": 0.98, "delivery_bytes_per_s": 0.0}
    latency = (network + 5) * MS
    known = {"latency_mean_ns": latency, "latency_p95_ns": latency, "service_mean_ns": latency}
    return a_run(
        path={**wan, **path},
        **known
        | {"server_compute_ns": 4.8 * MS, "server_other_ns": 0.0}
        | {"send_ns": None, "receive_ns": None, "decode_ns": 0.0, "network_ns": network * MS}
        | {"unexplained_ns": 0.0, "server_busy": 0.04, "measure_ns": None}
        | changes,
    )


def named(run: Summary, code: str) -> Limit:
    """The limit of a run, which has this code."""
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == code, limit
    return limit
