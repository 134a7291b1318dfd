"""From what the ledger has of a run to its Summary."""

from collections.abc import Iterator
from typing import Any

from reports.arrivals import Arrivals, arrivals
from reports.caveat import Caveat, caveat
from reports.client_doubts import client_doubts
from reports.doubts import doubts
from reports.health import Health, health
from reports.runs import Run
from reports.samples import gpus_over, sampling_gap
from reports.server import ServerSide, server_side
from reports.summary import Summary
from reports.windows import Counts, count, measure_ns, times


def summarise(run: Run) -> Summary:
    """One run's Summary; without numbers where it was not begun."""
    edges = {record["event"]: record for record in run.of_kind("run")}
    if "start" not in edges:
        return Summary(**run.planned, status="not-run")
    start, end = edges["start"], edges.get("end", {})
    status, note = end.get("status", "unfinished"), end.get("note", "")
    numbers = _numbers(run, status, note)
    return Summary(
        **run.planned, status=status, workers=len(start["workers"]), hosts=start["hosts"], **numbers
    )


def _numbers(run: Run, status: str, note: str) -> dict[str, Any]:
    windows, drained = run.measured("window"), run.measured("drained")
    counts, found = count(windows, drained), times(windows)
    load = run.planned["load"]
    kept = arrivals(load, windows, drained)
    fit, server = health(run.measured("health")), server_side(run.of_kind("server"), status)
    doubted = (
        *_stated(run),
        *doubts(status, note, counts, windows, drained, server),
        *_unsampled(run),
        *client_doubts(run.planned, counts.sent, kept, fit, found, windows),
    )
    return {
        **_rates(counts, measure_ns(load, windows, drained) if counts.finished else None),
        **found,
        **_server(server),
        **_generator(kept, fit),
        **_gpus(run),
        "caveats": doubted,
    }


def _rates(counts: Counts, measured_ns: float | None) -> dict[str, Any]:
    return {
        "requests": counts.finished,
        "failures": counts.failures,
        "failure_kinds": counts.failure_kinds,
        "abandoned": counts.abandoned,
        "images": counts.images,
        "measure_ns": measured_ns,
        "requests_per_s": _per_s(counts.ok, measured_ns),
        "images_per_s": _per_s(counts.images, measured_ns),
        "request_bytes": counts.request_bytes / counts.ok if counts.ok else None,
        "response_bytes": counts.response_bytes / counts.ok if counts.ok else None,
    }


def _per_s(total: int, elapsed_ns: float | None) -> float | None:
    return total / (elapsed_ns / 1e9) if elapsed_ns else None


def _server(server: ServerSide) -> dict[str, float | None]:
    return {
        "server_ns": server.server_ns,
        "server_queue_ns": server.queue_ns,
        "server_compute_ns": server.compute_ns,
        "executed_batch": server.executed_batch,
    }


def _generator(kept: Arrivals, fit: Health) -> dict[str, float | None]:
    return {
        "late": kept.late,
        "due": kept.due,
        "dropped": kept.dropped,
        "offered_per_s": kept.offered.per_s if kept.offered else None,
        "worker_cpu_pct": fit.worker_cpu_pct,
        "loop_lag_p99_ns": fit.loop_lag_p99_ns,
        "gc_max_ns": fit.gc_max_ns,
        "in_flight": fit.in_flight,
    }


def _gpus(run: Run) -> dict[str, float | None]:
    found = gpus_over(run.measured("sample"))
    return {
        "gpu_util_pct": found.util_pct,
        "gpu_memory_bytes": found.memory_bytes,
        "gpu_power_w": found.power_w,
    }


def _stated(run: Run) -> Iterator[Caveat]:
    return (caveat(record["code"], record["text"]) for record in run.of_kind("caveat"))


def _unsampled(run: Run) -> Iterator[Caveat]:
    watched = bool(run.of_kind("health") or run.of_kind("sample"))
    if gap := sampling_gap(run.of_kind("sample"), run.of_kind("phase"), watched):
        yield gap
