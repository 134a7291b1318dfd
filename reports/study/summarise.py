"""From what the ledger has of a run to its Summary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.caveat import Caveat, caveat
from reports.caveats.axes import axis_doubts
from reports.caveats.client import client_doubts
from reports.caveats.run import doubts, varying_load
from reports.fold.arrivals import Arrivals, arrivals
from reports.fold.cost import costs, gpu_count
from reports.fold.health import ClientCpu, Health, client_cpu, health
from reports.fold.path_fold import path_of
from reports.fold.run_records import Run
from reports.fold.samples import gpus_over, host_cpu_pct, sampling_gap
from reports.fold.server import server_side
from reports.fold.server_facts import memory_of
from reports.fold.serving import serving_gap, serving_of
from reports.fold.trace import trace_of
from reports.fold.windows import Counts, count, measure_ns, times
from reports.fold.workers import WorkerShare, worker_shares
from reports.study.attribution import attributed, given, on_path, on_server
from reports.summary.summary import Summary


def summarise(
    run: Run, options: Mapping[str, Any] | None = None, links: Sequence[Mapping[str, Any]] = ()
) -> Summary:
    """One run's Summary, with `options` and `links` of the header; without numbers where it was not begun."""
    edges = {record["event"]: record for record in run.of_kind("run")}
    if "start" not in edges:
        if run.of_kind("window"):
            raise ValueError(f"{run.planned['cell']:.60} has windows and was never begun")
        return Summary(**run.planned, status="not-run")
    start, end = edges["start"], edges.get("end", {})
    status, note = end.get("status", "unfinished"), end.get("note", "")
    seen = {"status": status, "workers": len(start["workers"]), "hosts": start["hosts"]}
    numbers = _numbers(run, status, note)
    spent = costs(numbers["images_per_s"], numbers["gpu_power_w"], options or {})
    stated = given(run.planned, options or {}, links)
    whole = Summary(**{**run.planned, **stated, **seen, **numbers, **spent})
    return attributed(replace(whole, caveats=(*whole.caveats, *axis_doubts(whole, links))))


def _numbers(run: Run, status: str, note: str) -> dict[str, Any]:
    windows, drained = run.measured("window"), run.drained
    counts, found = count(windows, drained), times(windows)
    if counts.images not in (0, counts.ok * run.planned["batch"]):
        raise ValueError(
            f"{run.planned['cell']:.60} has {counts.ok} successes of batch {run.planned['batch']}, and "
            f"{counts.images} images"
        )
    load = run.planned["load"]
    kept = arrivals(load, windows, drained)
    fit = health(run.measured("health"))
    server = server_side(run.of_kind("server"), windows, status, run.measured("sample"))
    spent = client_cpu(run.measured("health"), {line["worker"] for line in windows}, counts.finished)
    phase_ns = measure_ns(load, windows, drained) if counts.finished else None
    doubted = (
        *_stated(run),
        *doubts(status, note, counts, windows, drained, server),
        *serving_gap(run.of_kind("serving")),
        *_unsampled(run),
        *client_doubts(run.planned, counts.sent, kept, fit, found, windows),
        *varying_load(run.planned["stages"]),
    )
    return {
        **_rates(counts, phase_ns),
        **found,
        **on_server(server, serving_of(run.of_kind("serving")), phase_ns),
        **on_path(path_of(run.measured("path"), counts.images)),
        **_generator(kept, fit, spent),
        **_sampled(run),
        "trace": trace_of(run.of_kind("trace")),
        "memory": memory_of(run.of_kind("memory")),
        "per_worker": _workers(run, load),
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
        "images_per_s": None if counts.ok and not counts.images else _per_s(counts.images, measured_ns),
        "request_bytes": counts.request_bytes / counts.ok if counts.ok else None,
        "response_bytes": counts.response_bytes / counts.ok if counts.ok else None,
    }


def _per_s(total: int, elapsed_ns: float | None) -> float | None:
    return total / (elapsed_ns / 1e9) if elapsed_ns else None


def _generator(kept: Arrivals, fit: Health, spent: ClientCpu) -> dict[str, Any]:
    return {
        "late": kept.late,
        "due": kept.due,
        "dropped": kept.dropped,
        "offered_per_s": kept.offered.per_s if kept.offered else None,
        "client_cpu_ns": spent.ns,
        "client_cpu_doubts": spent.doubts,
        "worker_cpu_pct": fit.worker_cpu_pct,
        "loop_cpu_pct": fit.loop_cpu_pct,
        "cpu_wait_pct": fit.cpu_wait_pct,
        "awake_pct": fit.awake_pct,
        "loop_delay_ns": fit.loop_delay_ns,
        "loop_lag_p95_ns": fit.loop_lag_p95_ns,
        "loop_lag_p99_ns": fit.loop_lag_p99_ns,
        "lag_worker": fit.most_lagging,
        "gc_max_ns": fit.gc_max_ns,
        "in_flight": fit.in_flight,
    }


def _workers(run: Run, load: str) -> tuple[WorkerShare, ...]:
    names = [name for record in run.of_kind("run") for name in record.get("workers") or ()]
    windows, health_lines, path = (run.measured(kind) for kind in ("window", "health", "path"))
    return worker_shares(names, load, windows, run.drained, health_lines, path)


def _sampled(run: Run) -> dict[str, float | None]:
    samples = run.measured("sample")
    found = gpus_over(samples)
    return {
        "host_cpu_pct": host_cpu_pct(samples),
        "gpu_util_pct": found.util_pct,
        "gpu_memory_bytes": found.memory_bytes,
        "gpu_power_w": found.power_w,
        "gpus": gpu_count(samples),
    }


def _stated(run: Run) -> Iterator[Caveat]:
    return (caveat(record["code"], record["text"]) for record in run.of_kind("caveat"))


def _unsampled(run: Run) -> Iterator[Caveat]:
    watched = bool(run.of_kind("health") or run.of_kind("sample"))
    if gap := sampling_gap(run.of_kind("sample"), run.of_kind("phase"), watched):
        yield gap
