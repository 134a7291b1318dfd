"""From what the ledger has of a run to its Summary, and at last to where its time went."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from reports.backend_facts import facts_of, model_of
from reports.caveat import Caveat, caveat, without_consequences
from reports.caveats.attribution import attribution_caveats, axis_caveats, path_gap
from reports.caveats.client import client_caveats, taken_by_others
from reports.caveats.drift import drift_caveats
from reports.caveats.gpu import gpu_caveats
from reports.caveats.run import littles_law, random_input, run_caveats, varying_load
from reports.caveats.stalls import stall_caveats
from reports.fold.path import standing_alone
from reports.fold.records import epoch_s
from reports.fold.run_records import DAMAGED, RunRecords, is_paced
from reports.fold.samples import costs
from reports.fold.server import ServerSide, server_side
from reports.fold.server_facts import memory_of, serving_gap, serving_of, shed_of, trace_of
from reports.fold.windows import (
    Windows,
    abandoned,
    arrivals,
    client_phases,
    measure_ns,
    other_phases,
    request_counts,
)
from reports.fold.workers import worker_shares
from reports.histogram.percentiles import Distribution
from reports.limits.rules import limit_of
from reports.summary.classes import asked_shares, class_figures
from reports.summary.goodput import goodput_of
from reports.summary.link import BYTES_OF_MBIT
from reports.summary.network import remainder
from reports.summary.summary import Summary

DISTRIBUTIONS = {
    "latency": "latency",
    "service": "service_time",
    "send_delay": "send_delay",
    "failed": "failed",
    "timeout": "timeout",
}
"""Those of a Summary, and the histograms that they are of."""


def summarise(run: RunRecords, header: Mapping[str, Any] = MappingProxyType({})) -> Summary:
    """One run's Summary, given its ledger's header; without numbers where it was not begun."""
    options, links = header.get("options") or {}, header.get("links") or ()
    planned = {**_named(run.planned), "model": model_of(header, run.planned)}
    planned["facts"] = facts_of(header, planned["backend"], planned["endpoint"])
    edges = {record["event"]: record for record in run.of_kind("run")}
    if "start" not in edges:
        if damaged := [record for record in run.of_kind("caveat") if record["code"] == DAMAGED]:
            told = tuple(caveat(record["code"], record["text"]) for record in damaged)
            return Summary(**planned, status="unfinished", caveats=told)
        if any(second.results for second in run.seconds.values()):
            raise ValueError(f"{run.planned['cell']:.60} has windows and was never begun")
        return Summary(**planned, status="not-run")
    start, end = edges["start"], edges.get("end", {})
    status = end.get("status", "unfinished")
    seen = {"status": status, "workers": len(start["workers"]), "hosts": start["hosts"]}
    seen["places"] = tuple(start.get("places") or ())
    slo = str(options.get("slo") or "")
    stated, parts = given(run.planned, options, links), _parts(run, status, end.get("note", ""), slo)
    whole = Summary(**{**planned, **stated, **seen, **parts})
    cost = costs(whole.counts.images_per_s, whole.gpu.power_w, options)
    about = (header.get("endpoints") or {}).get(whole.endpoint) or {}
    inputs = () if whole.is_floor else about.get("inputs") or ()
    said = (*axis_caveats(whole, links), *random_input(inputs), *littles_law(whole, run.drained))
    # A server that was started by the study runs on the master's machine; older headers tell no more.
    local = about.get("local", True if about.get("embedded") else None)
    cores = (header.get("fingerprint") or {}).get("cores")
    placed = replace(whole, cost=cost, local=local, host_cores=cores)
    return attributed(replace(placed, caveats=(*whole.caveats, *said, *taken_by_others(placed))))


def _named(planned: Mapping[str, Any]) -> dict[str, Any]:
    """What was planned, by a Summary's names: its `server` is what was measured there, `asked` a replay's."""
    names = {"server": "shares"}
    return {names.get(name, name): value for name, value in planned.items() if name != "asked"}


def _parts(run: RunRecords, status: str, note: str, slo: str) -> dict[str, Any]:
    drained, load = run.drained, run.planned["load"]
    counted = _counted(run)
    times = {name: Distribution.of(counted.histogram(kept_as)) for name, kept_as in DISTRIBUTIONS.items()}
    sent, fit = arrivals(load, counted, drained), run.health.found(run.in_flight.mean)
    asked = asked_shares(run.planned["batch_mix"], run.planned["picture_mix"])
    readings, serving = run.samples.measured, serving_of(run.of_kind("serving"))
    phase_ns = measure_ns(is_paced(run.planned), run.workers.values(), drained) if counted.finished else None
    server = _server_of(run, counted, status).over(phase_ns, serving)
    doubted = (
        *(caveat(record["code"], record["text"]) for record in run.of_kind("caveat")),
        *run_caveats(status, note, counted, run.workers, drained, server),
        *serving_gap(run.of_kind("serving")),
        *_unsampled(run),
        *gpu_caveats(readings.each_gpu),
        *client_caveats(run.planned, counted, sent, fit, times["latency"], times["send_delay"]),
        *varying_load(load, run.planned["stages"]),
        *drift_caveats(run),
        *stall_caveats(run, times["latency"], phase_ns),
    )
    return {
        **times,
        "counts": request_counts(counted, phase_ns),
        "sent": sent,
        "goodput": goodput_of(slo, load, counted, sent, phase_ns),
        "classes": class_figures(run.classes, asked),
        "phases": client_phases(counted),
        "server": server,
        "serving": serving,
        "trace": trace_of(run.of_kind("trace")),
        "memory": memory_of(run.of_kind("memory")),
        "shed": shed_of(run.of_kind("server")),
        "server_cpu": run.samples.cpu.found,
        "path": run.path.path(counted.images),
        "generator": fit,
        "client_cpu": run.health.cpu_of(run.workers, counted.finished),
        "per_worker": worker_shares(run),
        "host_cpu_pct": readings.host_cpu_pct,
        "others_cpu": readings.others,
        "gpu": readings.over,
        "gpus": readings.gpus,
        "each_gpu": readings.each_gpu,
        "caveats": doubted,
    }


def _counted(run: RunRecords) -> Windows:
    """The windows, with what drained workers know better. Raises ValueError where they cannot be true."""
    left, others = abandoned(run.workers, run.drained), other_phases(run.drained)
    counted = replace(run.windows, abandoned=left, other_phases=others)
    planned, cell = run.planned, f"{run.planned['cell']:.60}"
    batch, ok, images = planned["batch"], counted.ok, counted.images
    mixed = bool(planned["batch_mix"] or planned["replay"])
    if not (ok <= images <= ok * batch if mixed else images in (0, ok * batch)):
        most = "up to " if mixed else ""
        raise ValueError(f"{cell} has {ok} successes of batch {most}{batch}, and {images} images")
    if run.classes and counted.finished != (told := sum(one.finished for one in run.classes.values())):
        raise ValueError(f"{cell} has {counted.finished} requests, and its classes have {told}")
    return counted


def _server_of(run: RunRecords, counted: Windows, status: str) -> ServerSide:
    """What the server says of the measure phase, which began when its record says."""
    began_s = {line["phase"]: epoch_s(line["utc"]) for line in run.of_kind("phase")}.get("measure")
    samples = run.samples
    return server_side(
        run.of_kind("server"), counted, status, samples.missed("measure"), samples.seen, began_s
    )


def _unsampled(run: RunRecords) -> Iterator[Caveat]:
    watched = bool(run.samples.spans) or any(second.shown.told for second in run.seconds.values())
    yield from run.samples.gap(run.of_kind("phase"), watched)


def attributed(run: Summary) -> Summary:
    """The Summary with the sum of its parts, its limit, and all doubts but those that another explains."""
    seen, gap = run, path_gap(run)
    if run.path is not None and gap is not None:
        # The path's totals are not of the run's load, so they are unknown.
        seen = replace(run, path=standing_alone(run.path), caveats=(*run.caveats, gap))
    proven_ns, most_ns, unexplained_ns = remainder(seen)
    whole = replace(seen, network_ns=proven_ns, network_most_ns=most_ns, unexplained_ns=unexplained_ns)
    doubted = replace(whole, caveats=(*whole.caveats, *attribution_caveats(whole)))
    return replace(doubted, limit=limit_of(doubted), caveats=without_consequences(doubted.caveats))


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
