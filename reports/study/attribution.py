"""Where one run's time went and what was in its way: the part of its Summary that rests on all the others."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reports.caveats.attribution import attribution_doubts, path_gap
from reports.fold.path import Path
from reports.fold.path_fold import standing_alone
from reports.fold.server import ServerSide
from reports.fold.serving import Serving
from reports.limits.rules import limit_of
from reports.summary.breakdown import breakdown
from reports.summary.summary import Summary

BYTES_OF_MBIT = 1e6 / 8


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
