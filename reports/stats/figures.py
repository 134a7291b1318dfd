"""Figures of one run, the fastest cell, and the ways over HTTP and gRPC that are pairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from reports.stats.log_ratio import log_ratio
from reports.stats.repeats import Runs, Value, grouped, typical
from reports.study.study import Study
from reports.summary.summary import CellFields, Summary, Way

Pairs = dict[str, tuple[Way, Way]]


def fastest_cell(cells: Iterable[Runs]) -> Runs:
    """The repeats of that cell; of those with a run that is not invalidated, where there are any."""
    every = list(cells)
    sound = [runs for runs in every if any(images_per_s(run) and not run.tainted for run in runs)]
    return max(sound or every, key=lambda runs: typical(runs, images_per_s) or 0.0, default=[])


@dataclass(frozen=True)
class InMs:
    """Some nanoseconds of a part of a run, such as `latency.p50_ns`, in milliseconds."""

    path: str

    def __call__(self, run: Summary) -> float | None:
        """Those of one run."""
        value_ns: float | None = attrgetter(self.path)(run)
        return None if value_ns is None else value_ns / 1e6


def in_ms(path: str) -> InMs:
    """The value at a path."""
    return InMs(path)


latency_ms, compute_ms = in_ms("latency.p50_ns"), in_ms("server.compute_ns")
"""Median latency, and the server's compute time per request, in milliseconds."""


def images_per_s(run: Summary) -> float | None:
    """Images per second; None where nothing succeeded: 0 would say "slow" where the run failed."""
    return run.counts.images_per_s if run.succeeded else None


def holds_waits(value: Value) -> bool:
    """Whether a figure depends on how long requests waited at the server."""
    if isinstance(value, InMs):
        return value.path.startswith(("latency.", "service."))
    return value is images_per_s


def not_told_apart(best: Runs, other: Runs) -> bool:
    """Whether both have repeats, which do not tell by images per second which is faster."""
    sides = [[rate for run in runs if (rate := images_per_s(run))] for runs in (best, other)]
    return all(sides) and log_ratio(*sides).alike


def protocol_pairs(study: Study, runs: Runs) -> Pairs:
    """Name → the ways over HTTP and over gRPC to one model of a server, by the same payload and variant.

    Where a study has several payloads or variants, each is a pair of its own, and the name holds it. Where
    there are several ways by one protocol, as with codecs of their own, none of them is the one to compare.
    """
    ways = {run.way: run for run in study.ordered(runs)}.values()
    spoken = grouped(ways, lambda run: (*pairing(run), run.variant, run.protocol))
    found: Pairs = {}
    for key, sides in spoken.items():
        others = spoken.get((*key[:-1], "grpc"), [])
        if key[-1] == "http" and len(sides) == len(others) == 1:
            http, grpc = sides[0], others[0]
            found[study.named(http.way._replace(endpoint=pair_name(http, grpc)))] = (http.way, grpc.way)
    return found


def pairing(cell: CellFields) -> tuple[str, str, str]:
    """What two protocols must have in common to be compared: server, payload and model."""
    return cell.shares or cell.backend, cell.payload, cell.model


def pair_name(http: CellFields, grpc: CellFields) -> str:
    """The backend, with its payload where its endpoints hold it: `onnx`; else both endpoints, gRPC first."""
    both = http.endpoint, grpc.endpoint
    named = (stem for stem in stems(http) if both == (f"{stem}-http", f"{stem}-grpc"))
    return next(named, f"{grpc.endpoint} / {http.endpoint}")


def stems(cell: CellFields) -> tuple[str, str]:
    """What the names of a backend's own endpoints begin with: of its first payload, or of this one."""
    return cell.backend, f"{cell.backend}-{cell.payload}"
