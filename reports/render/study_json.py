"""study.json: what was planned, on what it ran, how it ended, and what is doubtful."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from reports.cells_csv.columns import Figure, figures
from reports.gates.verdict import Verdict
from reports.page.page import Page
from reports.study.study import Study, inconclusive_because
from reports.summary.summary import Summary, parts_of
from reports.topics.contention.conclusion import record
from reports.topics.contention.conclusion import verdicts as verdicts_on_arms
from reports.topics.published.hypotheses import judged
from reports.topics.together.interference import effects, is_of_groups
from reports.topics.together.split import is_split, schedules

_FROM_HEADER = (
    *("study", "title", "size", "started_utc", "plan", "options", "fingerprint"),
    *("images", "endpoints", "links", "hosts"),
)
_OF_RUN: Mapping[str, Figure] = {
    **figures("", "cell repeat status tainted"),
    **figures("counts", "requests"),
    **figures("", "timeouts"),
    **figures("counts", "abandoned"),
    **figures("failed", "p50_ns", prefix="failed_"),
    **figures("timeout", "p50_ns", prefix="timeout_"),
    **figures("", "arrivals"),
    **figures("sent", "offered_per_s late due dropped"),
    **figures("client_cpu", "ns doubts", prefix="client_cpu_"),
    **figures("generator", "worker_cpu_pct loop_lag_p99_ns"),
    **figures("send_delay", "p99_ns", prefix="send_delay_"),
    **figures("generator", "gc_max_ns in_flight loop_cpu_pct cpu_wait_pct awake_pct loop_delay_ns"),
    **figures("generator", "loop_lag_p95_ns"),
    "lag_worker": attrgetter("generator.most_lagging"),
    **figures("", "host_cpu_pct variant channels client link congestion workers hosts profile"),
    "workers_asked": attrgetter("topology.workers"),
    "hosts_asked": attrgetter("topology.hosts"),
    "instances_asked": attrgetter("instances"),
    **figures("", "queue_delay_us link_bytes_per_s network_most_ns"),
    **figures("latency", "mean_ns", prefix="latency_"),
    **figures("server", "busy", prefix="server_"),
}
_GOODPUT = figures("goodput", "slo objective good due share per_s is_met")
_NESTED = ("path", "serving", "trace", "memory", "limit")
_OF_COLD = ("endpoint", "batch", "first_ns", "second_ns", "reloaded")


def render_json(study: Study, page: Page, verdicts: Sequence[Verdict]) -> str:
    """The whole file; without verdicts where no gate judged the study."""
    head = {name: study.header.get(name) for name in _FROM_HEADER} | {"plan": list(study.plan)}
    ended = {"status": study.status, "reason": study.reason, "cut_line": study.cut_line}
    because = inconclusive_because(study)
    verdict = {"inconclusive": bool(because), "inconclusive_because": because}
    told = [answer.text for answer in page.answers]
    rows = [asdict(answer) for answer in page.answers]
    said = {"answers": rows, "banner": page.banner, "findings": told, "notices": page.notices}
    gates = {"verdicts": [asdict(verdict) for verdict in verdicts]}
    colds = [{name: cold.get(name) for name in _OF_COLD} for cold in study.colds]
    runs = {"cold": colds, "runs": [_run(run) for run in study.runs]}
    compared = {
        "contention": [record(verdict) for verdict in verdicts_on_arms(study)],
        "hypotheses": [asdict(found) for found in judged(study)],
        **({"interference": [one.to_record() for one in effects(study)]} if is_of_groups(study) else {}),
        **({"split": [one.to_record() for of in schedules(study) for one in of]} if is_split(study) else {}),
    }
    return json.dumps(head | ended | verdict | said | gates | compared | runs, indent=1) + "\n"


def _run(run: Summary) -> dict[str, Any]:
    steps = {name: asdict(step) for name, step in run.server.steps.items()}
    return {
        **{name: of(run) for name, of in _OF_RUN.items()},
        "breakdown": {f"{part.name}_ns": part.ns for part in parts_of(run)},
        "server_parts": {f"{name}_ns": value for name, value in run.server.parts.items()},
        **({"server_steps": steps} if steps else {}),
        **({"gpus": [asdict(gpu) for gpu in run.each_gpu]} if run.each_gpu else {}),
        "cold": {"share": run.server.cold.share, "batches": list(run.server.cold.batches)},
        **{name: asdict(value) if (value := getattr(run, name)) else None for name in _NESTED},
        **({"goodput": {name: of(run) for name, of in _GOODPUT.items()}} if run.goodput.slo else {}),
        **({"classes": [asdict(one) for one in run.classes]} if run.classes else {}),
        "failures": dict(run.counts.failure_kinds),
        "caveats": [asdict(caveat) for caveat in run.caveats],
    }
