"""Figures of one run, the fastest cell, and the ways over HTTP and gRPC that are pairs."""

from collections.abc import Iterable
from operator import attrgetter

from reports.stats.log_ratio import log_ratio
from reports.stats.repeats import Runs, Value, typical
from reports.study.study import Study
from reports.summary.summary import Summary, Way

Pairs = dict[str, tuple[Way, Way]]


def fastest_cell(cells: Iterable[Runs]) -> Runs:
    """The repeats of that cell; of those with a run that is not disqualified, where there are any."""
    every = list(cells)
    sound = [runs for runs in every if any(images_per_s(run) and not run.tainted for run in runs)]
    return max(sound or every, key=lambda runs: typical(runs, images_per_s) or 0.0, default=[])


def in_ms(path: str) -> Value:
    """Some nanoseconds of a part of a run, such as `latency.p50_ns`, in milliseconds."""
    found = attrgetter(path)

    def value(run: Summary) -> float | None:
        value_ns: float | None = found(run)
        return None if value_ns is None else value_ns / 1e6

    return value


latency_ms, compute_ms = in_ms("latency.p50_ns"), in_ms("server.compute_ns")
"""Median latency, and the server's compute time per request, in milliseconds."""


def images_per_s(run: Summary) -> float | None:
    """Images per second; None where nothing succeeded: 0 would say "slow" where the run failed."""
    return run.counts.images_per_s if run.succeeded else None


def not_told_apart(best: Runs, other: Runs) -> bool:
    """Whether both have repeats, which do not tell by images per second which is faster."""
    sides = [[rate for run in runs if (rate := images_per_s(run))] for runs in (best, other)]
    return all(sides) and log_ratio(*sides).alike


def protocol_pairs(study: Study, runs: Runs) -> Pairs:
    """Backend → its way over HTTP and over gRPC, where both carry the same payload in the same variant.

    Where a study has several payloads or variants, each is a pair of its own, and the name holds it.
    """
    spoken = {(run.backend, run.payload, run.variant, run.protocol): run.way for run in runs}
    ranks = {way: rank for rank, way in enumerate(study.ways)}
    found = (
        (spoken[backend, payload, variant, "http"], grpc)
        for backend, payload, variant, protocol in sorted(spoken, key=lambda key: ranks[spoken[key]])
        if protocol == "http" and (grpc := spoken.get((backend, payload, variant, "grpc")))
    )
    return {
        study.named(http._replace(endpoint=http.endpoint.removesuffix("-http"))): (http, grpc)
        for http, grpc in found
    }
