"""What the repeats of a cell say together, with their lowest and highest, and which can be rested on."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median
from typing import TypeVar

from reports.format import digits
from reports.stats.log_ratio import log_ratio
from reports.study.study import Study
from reports.summary.summary import Summary, Way

Key = TypeVar("Key")
Item = TypeVar("Item")
Value = Callable[[Summary], float | None]
Runs = Sequence[Summary]
COMPARABLE_RUNS, ENOUGH_RUNS = 2, 3


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items, such as runs, of each key, in the order in which the keys come."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def by_cell(runs: Iterable[Summary]) -> dict[str, list[Summary]]:
    """The repeats of each cell, by its name."""
    return grouped(runs, lambda run: run.cell)


def by_way(study: Study, runs: Iterable[Summary]) -> dict[Way, list[Summary]]:
    """The runs of each way that has any, in the study's order."""
    return grouped(study.ordered(runs), lambda run: run.way)


def by_batch(study: Study, runs: Iterable[Summary]) -> dict[tuple[Way, int], list[Summary]]:
    """Those of each way and batch, likewise."""
    return grouped(study.ordered(runs, lambda run: run.batch), lambda run: (run.way, run.batch))


def repeats(study: Study) -> str:
    """How many runs are behind each number, in a sentence."""
    most = max((run.repeat for run in study.started), default=1)
    if most == 1:
        return "One run per cell."
    return f"Median of up to {most} repeats; disqualified ones count only where there is no other."


def typical(runs: Runs, value: Value) -> float | None:
    """The median over the repeats it rests on; None where there are none."""
    known = [found for run in resting_on(runs, value) if (found := value(run)) is not None]
    return median(known) if known else None


def resting_on(runs: Runs, value: Value) -> Runs:
    """The repeats that have the value and no disqualifying caveat, or all that have it where each has one."""
    known = [run for run in runs if value(run) is not None]
    return [run for run in known if not run.tainted] or known


def scarcity(counts: Collection[int]) -> str:
    """What a comparison cannot tell when it rests on so many runs of each cell; empty where they suffice."""
    if max(counts) < COMPARABLE_RUNS:
        return "inconclusive: one run per cell; --repeats 5 would tell"
    if min(counts) < COMPARABLE_RUNS:
        return "inconclusive where a cell has one run; --repeats 5 would tell"
    return hedge(min(counts))


def taints(runs: Runs) -> Iterator[str]:
    """The advice of each caveat that disqualifies one of the runs."""
    return (f"{caveat.code}: {caveat.advice}" for run in runs for caveat in run.caveats if caveat.tainted)


def absence(runs: Runs) -> str:
    """Why there is no number."""
    if not runs:
        return "not in this study's plan"
    if not any(run.started for run in runs):
        return "not run"
    if any(run.succeeded for run in runs):
        return "not stated by the server"
    ends = {run.status for run in runs if run.started} - {"done"}
    return f"no request succeeded ({', '.join(sorted(ends))})" if ends else "no request succeeded"


@dataclass(frozen=True)
class Spread:
    """What some repeats came to; with one run all three are the same."""

    median: float
    low: float
    high: float
    runs: int = 1

    def __str__(self) -> str:
        around = "" if self.runs == 1 else f" ({digits(self.low)}–{digits(self.high)})"
        return f"{digits(self.median)}{around}"

    @property
    def times(self) -> str:
        """As a ratio: 0.176× (0.166–0.187)."""
        around = "" if self.low == self.high else f" ({digits(self.low)}–{digits(self.high)})"
        return f"{digits(self.median)}×{around}"


def spread_of(runs: Runs, value: Value) -> Spread | None:
    """The spread of a value over the runs that have it; None where none has."""
    found = [known for run in runs if (known := value(run)) is not None]
    return Spread(median(found), min(found), max(found), len(found)) if found else None


def over(top: Spread, bottom: Spread) -> Spread | None:
    """The ratio of two medians, with the least and the most that their repeats allow; None over 0."""
    if bottom.low <= 0:
        return None
    ends = (top.low / bottom.high, top.high / bottom.low)
    return Spread(top.median / bottom.median, *ends, min(top.runs, bottom.runs))


def hedge(fewest: int) -> str:
    """What so few runs of each side leave open; empty where they suffice."""
    if fewest < COMPARABLE_RUNS:
        return "one run is behind a figure, so this may be chance; --repeats 5 would tell"
    if fewest < ENOUGH_RUNS:
        return f"with fewer than {ENOUGH_RUNS} runs per cell, small differences may be chance"
    return ""


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
