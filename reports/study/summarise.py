"""From what the ledger has of a run to its Summary, and at last to where its time went."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.caveat import Caveat, caveat
from reports.caveats.attribution import attribution_caveats, axis_caveats, path_gap
from reports.caveats.client import client_caveats
from reports.caveats.run import run_caveats, varying_load
from reports.fold.path import standing_alone
from reports.fold.run_records import RunRecords
from reports.fold.samples import costs
from reports.fold.server import ServerSide, Serving, server_side, serving_gap, serving_of
from reports.fold.server_facts import memory_of, trace_of
from reports.fold.windows import Windows, abandoned, arrivals, measure_ns, times
from reports.fold.workers import worker_shares
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
        if any(second.results for second in run.seconds.values()):
            raise ValueError(f"{run.planned['cell']:.60} has windows and was never begun")
        return Summary(**run.planned, status="not-run")
    start, end = edges["start"], edges.get("end", {})
    status, note = end.get("status", "unfinished"), end.get("note", "")
    seen = {"status": status, "workers": len(start["workers"]), "hosts": start["hosts"]}
    numbers = _numbers(run, status, note)
    spent = costs(numbers["images_per_s"], numbers["gpu_power_w"], options or {})
    stated = given(run.planned, options or {}, links)
    whole = Summary(**{**run.planned, **stated, **seen, **numbers, **spent})
    return attributed(replace(whole, caveats=(*whole.caveats, *axis_caveats(whole, links))))


def _numbers(run: RunRecords, status: str, note: str) -> dict[str, Any]:
    drained, load = run.drained, run.planned["load"]
    counts = replace(run.windows, abandoned=abandoned(run.workers, drained))
    if counts.images not in (0, counts.ok * run.planned["batch"]):
        raise ValueError(
            f"{run.planned['cell']:.60} has {counts.ok} successes of batch {run.planned['batch']}, and "
            f"{counts.images} images"
        )
    found, kept = times(counts), arrivals(load, counts, drained)
    fit = run.health.found(run.in_flight.mean)
    seen = run.samples.missed("measure"), run.samples.requests
    server = server_side(run.of_kind("server"), counts, status, *seen)
    spent = run.health.cpu_of(run.workers, counts.finished)
    phase_ns = measure_ns(load, run.workers.values(), drained) if counts.finished else None
    path = run.path.path(counts.images)
    doubted = (
        *(caveat(record["code"], record["text"]) for record in run.of_kind("caveat")),
        *run_caveats(status, note, counts, run.workers, drained, server),
        *serving_gap(run.of_kind("serving")),
        *_unsampled(run),
        *client_caveats(run.planned, counts, kept, fit, found),
        *varying_load(run.planned["stages"]),
    )
    return {
        **_rates(counts, phase_ns),
        **found,
        **_on_server(server, serving_of(run.of_kind("serving")), phase_ns),
        **_named_alike(kept),
        **_named_alike(fit),
        **_sampled(run),
        "offered_per_s": kept.offered.per_s if kept.offered else None,
        "client_cpu_ns": spent.ns,
        "client_cpu_doubts": spent.doubts,
        "lag_worker": fit.most_lagging,
        "path": path,
        "tcp_asked": path.asked if path else None,
        "tcp_connections": path.connections if path else None,
        "trace": trace_of(run.of_kind("trace")),
        "memory": memory_of(run.of_kind("memory")),
        "per_worker": worker_shares(run),
        "caveats": doubted,
    }


def _named_alike(found: object) -> dict[str, Any]:
    """What a Summary has under the same names."""
    return {name: value for name, value in vars(found).items() if name in Summary.__dataclass_fields__}


def _rates(counts: Windows, measured_ns: float | None) -> dict[str, Any]:
    return {
        "requests": counts.finished,
        "failures": counts.failures,
        "failure_kinds": dict(counts.failure_kinds),
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


def _sampled(run: RunRecords) -> dict[str, float | None]:
    found = run.samples.measured.over
    return {
        "host_cpu_pct": run.samples.measured.host_cpu_pct,
        "gpu_util_pct": found.util_pct,
        "gpu_memory_bytes": found.memory_bytes,
        "gpu_power_w": found.power_w,
        "gpus": run.samples.measured.gpus,
    }


def _unsampled(run: RunRecords) -> Iterator[Caveat]:
    watched = bool(run.samples.spans) or any(second.shown.told for second in run.seconds.values())
    yield from run.samples.gap(run.of_kind("phase"), watched)


def attributed(run: Summary) -> Summary:
    """The Summary with the sum of its parts, the doubts that follow from it, and its limit."""
    seen, gap = run, path_gap(run)
    if run.path is not None and gap is not None:
        # The path's totals are not of the run's load, so they are unknown.
        seen = replace(run, path=standing_alone(run.path), caveats=(*run.caveats, gap))
    network_ns, unexplained_ns = breakdown(seen)
    whole = replace(seen, network_ns=network_ns, unexplained_ns=unexplained_ns)
    doubted = replace(whole, caveats=(*whole.caveats, *attribution_caveats(whole)))
    return replace(doubted, limit=limit_of(doubted))


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


def _on_server(side: ServerSide, serving: Serving | None, phase_ns: float | None) -> dict[str, Any]:
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
