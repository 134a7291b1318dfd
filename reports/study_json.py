"""study.json: what was planned, on what it ran, how it ended, and what is doubtful."""

import json
from dataclasses import asdict
from typing import Any

from reports.inconclusive import inconclusive_because
from reports.page import Page
from reports.study import Study
from reports.summary import Summary

_FROM_HEADER = (
    "study",
    "title",
    "size",
    "started_utc",
    "plan",
    "options",
    "fingerprint",
    "images",
    "endpoints",
)
_OF_RUN = (
    *("cell", "repeat", "status", "tainted", "requests", "timeouts", "abandoned"),
    *("failed_p50_ns", "timeout_p50_ns"),
    *("arrivals", "offered_per_s", "late", "due", "dropped"),
    *("worker_cpu_pct", "loop_lag_p99_ns", "send_delay_p99_ns", "gc_max_ns", "in_flight"),
)


def render_json(study: Study, page: Page) -> str:
    """The whole file."""
    head = {name: study.header.get(name) for name in _FROM_HEADER} | {"plan": list(study.plan)}
    ended = {"status": study.status, "reason": study.reason, "cut_line": study.cut_line}
    because = inconclusive_because(study)
    verdict = {"inconclusive": bool(because), "inconclusive_because": because}
    said = {"findings": page.findings, "notices": page.notices}
    runs = {"runs": [_run(run) for run in study.runs]}
    return json.dumps(head | ended | verdict | said | runs, indent=1) + "\n"


def _run(run: Summary) -> dict[str, Any]:
    return {
        **{name: getattr(run, name) for name in _OF_RUN},
        "failures": dict(run.failure_kinds),
        "caveats": [asdict(doubt) for doubt in run.caveats],
    }
