"""Figures of one run, the fastest cell, and the ways over HTTP and gRPC that are pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from reports.stats.failures import rankable
from reports.stats.paired import apart_from_best
from reports.stats.percentiles import mean_over
from reports.stats.repeats import Runs, Value, by_cell, by_repeat, grouped
from reports.study.study import Study
from reports.summary.summary import CellFields, LatencyAt, Summary, Way

Pairs = dict[str, tuple[Way, Way]]


def fastest_cell(runs: Iterable[Summary]) -> Runs:
    """The repeats of the cell with the most images per second; none where no cell may be ranked.

    Of cells with a run that is not invalidated, where there are any. All runs of a cell must be given.
    """
    cells = by_cell(rankable(runs)).values()
    every = [of for of in cells if any(map(images_per_s, of))]
    sound = [of for of in every if any(images_per_s(run) and not run.tainted for run in of)]
    return max(sound or every, key=rate, default=[])


def rate(runs: Runs) -> float:
    """The images per second of the repeats of a cell, as tables show them; 0 without a success."""
    found = mean_over(runs, images_per_s)
    return found.value if found else 0.0


@dataclass(frozen=True)
class InMs:
    """Some nanoseconds of a part of a run, such as `latency.mean_ns`, in milliseconds."""

    path: str

    def __call__(self, run: Summary) -> float | None:
        """Those of one run."""
        value_ns: float | None = attrgetter(self.path)(run)
        return None if value_ns is None else value_ns / 1e6


def in_ms(path: str) -> InMs:
    """The value at a path."""
    return InMs(path)


mean_ms, compute_ms = in_ms("latency.mean_ns"), in_ms("server.compute_ns")
"""Mean latency, and the server's compute time per request, in milliseconds."""
p50_ms, p95_ms = LatencyAt("p50"), LatencyAt("p95")


def images_per_s(run: Summary) -> float | None:
    """Images per second; None where nothing succeeded: 0 would say "slow" where the run failed."""
    return run.counts.images_per_s if run.succeeded else None


def holds_waits(value: Value) -> bool:
    """Whether a figure depends on how long requests waited at the server."""
    if isinstance(value, InMs):
        return value.path.startswith(("latency.", "service."))
    return value is images_per_s or isinstance(value, LatencyAt)


def told_from_best(best: Runs, others: Sequence[Runs], value: Value = images_per_s) -> list[bool | None]:
    """For each of some others, whether the repeats show that it differs from the best; None of too few."""
    return apart_from_best(by_repeat(best, value), [by_repeat(other, value) for other in others])


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
