"""From what the ledger has of a run to its Summary, and at last to where its time went."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.caveat import Caveat, caveat
from reports.caveats.attribution import attribution_doubts, axis_doubts, path_gap
from reports.caveats.client import client_doubts
from reports.caveats.run import doubts, varying_load
from reports.fold.health import ClientCpu, ClientHealth, client_cpu, health
from reports.fold.path import Path, path_of, standing_alone
from reports.fold.run_records import RunRecords
from reports.fold.samples import costs, gpu_count, gpus_over, host_cpu_pct, sampling_gap
from reports.fold.server import ServerSide, Serving, server_side, serving_gap, serving_of
from reports.fold.server_facts import memory_of, trace_of
from reports.fold.windows import Arrivals, Counts, arrivals, count, measure_ns, times
from reports.fold.workers import WorkerShare, worker_shares
from reports.limits.rules import limit_of
from reports.summary.breakdown import breakdown
from reports.summary.summary import Summary

BYTES_OF_MBIT = 1e6 / 8


def summarise(
    run: RunRecords, options: Mapping[str, Any] | None = None, links: Sequence[Mapping[str, Any]] = ()
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


def _numbers(run: RunRecords, status: str, note: str) -> dict[str, Any]:
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


def _generator(kept: Arrivals, fit: ClientHealth, spent: ClientCpu) -> dict[str, Any]:
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


def _workers(run: RunRecords, load: str) -> tuple[WorkerShare, ...]:
    names = [name for record in run.of_kind("run") for name in record.get("workers") or ()]
    windows, health_lines, path = (run.measured(kind) for kind in ("window", "health", "path"))
    return worker_shares(names, load, windows, run.drained, health_lines, path)


def _sampled(run: RunRecords) -> dict[str, float | None]:
    samples = run.measured("sample")
    found = gpus_over(samples)
    return {
        "host_cpu_pct": host_cpu_pct(samples),
        "gpu_util_pct": found.util_pct,
        "gpu_memory_bytes": found.memory_bytes,
        "gpu_power_w": found.power_w,
        "gpus": gpu_count(samples),
    }


def _stated(run: RunRecords) -> Iterator[Caveat]:
    return (caveat(record["code"], record["text"]) for record in run.of_kind("caveat"))


def _unsampled(run: RunRecords) -> Iterator[Caveat]:
    watched = bool(run.of_kind("health") or run.of_kind("sample"))
    if gap := sampling_gap(run.of_kind("sample"), run.of_kind("phase"), watched):
        yield gap


def attributed(run: Summary) -> Summary:
    """The Summary with the sum of its parts, the doubts that follow from it, and its limit."""
    seen = _without_gap(run)
    network_ns, unexplained_ns = breakdown(seen)
    whole = replace(seen, network_ns=network_ns, unexplained_ns=unexplained_ns)
    doubted = replace(whole, caveats=(*whole.caveats, *attribution_doubts(whole)))
    return replace(doubted, limit=limit_of(doubted))


def _without_gap(run: Summary) -> Summary:
    """The same run; where its path's totals are not of its load, they are unknown, and a caveat says so."""
    gap = path_gap(run)
    if run.path is None or gap is None:
        return run
    return replace(run, path=standing_alone(run.path), caveats=(*run.caveats, gap))


def given(
    planned: Mapping[str, Any], options: Mapping[str, Any], links: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """How requests were made, and the rate of the link that carried them.

    As planned; from the study's options where a plan is older than that, when only gRPC had channels. An
    emulated link's own rate, known or not, takes the place of the one that --link-mbit gave.
    """
    option = options.get("channels") if planned["protocol"] == "grpc" else ""
    rate = options.get("link_mbit")
    if name := planned.get("link"):
        rate = next((link.get("mbit_per_s") for link in links if link.get("name") == name), None)
    return {
        "channels": planned.get("channels") or option or "",
        "client": planned.get("client") or options.get("client") or "",
        "link_bytes_per_s": rate * BYTES_OF_MBIT if rate else None,
    }


def on_server(side: ServerSide, serving: Serving | None, phase_ns: float | None) -> dict[str, Any]:
    """The server's parts, how busy it was and how cold."""
    return {
        "server_ns": side.server_ns,
        "server_queue_ns": side.queue_ns,
        "server_compute_ns": side.compute_ns,
        "server_other_ns": side.other_ns,
        "server_parts": side.parts,
        "server_busy": side.busy_share(phase_ns, serving.instances if serving else None),
        "cold_share": side.cold.share,
        "cold_batches": side.cold.batches,
        "executed_batch": side.executed_batch,
        "serving": serving,
    }


def on_path(path: Path | None) -> dict[str, Any]:
    """The connections between workers and server."""
    return {
        "path": path,
        "tcp_asked": path.asked if path else None,
        "tcp_connections": path.connections if path else None,
    }
