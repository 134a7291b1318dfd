"""study.json: what was planned, on what it ran, how it ended, and what is doubtful."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reports.gates.verdict import Verdict
from reports.ledger.axes import recorded
from reports.page.page import Page
from reports.study.study import Study, inconclusive_because
from reports.summary.breakdown import parts_of
from reports.summary.summary import Summary
from reports.topics.contention.tables import record
from reports.topics.contention.verdict import verdicts as verdicts_on_arms
from reports.topics.published.hypotheses import judged

_FROM_HEADER = (
    *("study", "title", "size", "started_utc", "plan", "options", "fingerprint"),
    *("images", "endpoints", "links", "hosts"),
)
_OF_RUN = (
    *("cell", "repeat", "status", "tainted", "requests", "timeouts", "abandoned"),
    *("failed_p50_ns", "timeout_p50_ns"),
    *("arrivals", "offered_per_s", "late", "due", "dropped"),
    *("client_cpu_ns", "client_cpu_doubts"),
    *("worker_cpu_pct", "loop_lag_p99_ns", "send_delay_p99_ns", "gc_max_ns", "in_flight"),
    *("loop_cpu_pct", "cpu_wait_pct", "awake_pct", "loop_delay_ns", "loop_lag_p95_ns"),
    *("lag_worker", "host_cpu_pct"),
    *("variant", "channels", "client", "link", "congestion", "workers", "hosts", "profile"),
)
_MORE_OF_RUN = ("queue_delay_us", "link_bytes_per_s", "latency_mean_ns", "server_busy")
_NESTED = ("path", "serving", "trace", "memory", "limit")
_OF_COLD = ("endpoint", "batch", "first_ns", "second_ns", "reloaded")


def render_json(study: Study, page: Page, verdicts: Sequence[Verdict] = ()) -> str:
    """The whole file; without verdicts where no gate judged the study."""
    head = {name: study.header.get(name) for name in _FROM_HEADER} | {"plan": list(study.plan)}
    ended = {"status": study.status, "reason": study.reason, "cut_line": study.cut_line}
    because = inconclusive_because(study)
    verdict = {"inconclusive": bool(because), "inconclusive_because": because}
    said = {"findings": page.findings, "notices": page.notices}
    gates = {"verdicts": [asdict(verdict) for verdict in verdicts]}
    colds = [{name: record.get(name) for name in _OF_COLD} for record in study.colds]
    runs = {"cold": colds, "runs": [_run(run) for run in study.runs]}
    compared = {
        "contention": [record(verdict) for verdict in verdicts_on_arms(study)],
        "hypotheses": [asdict(found) for found in judged(study)],
    }
    return json.dumps(head | ended | verdict | said | gates | compared | runs, indent=1) + "\n"


def _run(run: Summary) -> dict[str, Any]:
    return {
        **{name: getattr(run, name) for name in _OF_RUN},
        **{f"{name}_asked": value for name, value in recorded(run, ("topology", "instances")).items()},
        **{name: getattr(run, name) for name in _MORE_OF_RUN},
        "breakdown": {f"{part.name}_ns": part.ns for part in parts_of(run)},
        "server_parts": {f"{name}_ns": value for name, value in run.server_parts.items()},
        "cold": {"share": run.cold_share, "batches": list(run.cold_batches)},
        **{name: asdict(value) if (value := getattr(run, name)) else None for name in _NESTED},
        "failures": dict(run.failure_kinds),
        "caveats": [asdict(caveat) for caveat in run.caveats],
    }
