"""The bounds of benchmarks/generator.py, each a figure of two arms of the same cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.bounds import Bounds
from benchmarks.generating.arm import Told
from benchmarks.generating.arms import BEFORE, GRPCIO, GRPCIO_GEVENT, OVER_HTTP, OVER_HTTP2
from benchmarks.generating.figures import UNSTABLE, Cell, Measured, Over, cpu_ms, paired, per_core, per_s
from benchmarks.generating.kinds import KINDS
from benchmarks.generating.peers import PERF_ANALYZER

OURS, FLOOR, STOCK = "inferswarm", "socket", "stock"
OURSELVES = (OURS, OVER_HTTP2, OVER_HTTP)
ADDED_MS = 0.15


@dataclass(frozen=True)
class Ratio:
    """The ratio of our figure to another arm's, and its bound; ours is that of the arm `mine`."""

    cell: Cell
    of: str
    other: str
    bound: float
    least: bool = False
    mine: str = OURS


FIGURES: dict[str, Callable[[Told], float]] = {
    "CPU": cpu_ms,
    "requests/s": per_s,
    "requests/s per core": per_core,
}
RATIOS = (
    Ratio(("fp32-http", 16), "CPU", FLOOR, 1.5),
    Ratio(("fp32-http", 16), "CPU", STOCK, 0.7),
    Ratio(("fp32-http", 16), "CPU", PERF_ANALYZER, 0.35),
    Ratio(("fp32-grpc", 16), "CPU", FLOOR, 1.5),
    Ratio(("fp32-grpc", 16), "CPU", GRPCIO_GEVENT, 0.5),
    Ratio(("fp32-grpc", 16), "CPU", PERF_ANALYZER, 0.45),
    Ratio(("fp32-grpc", 16), "CPU", OVER_HTTP, 1.25, mine=OVER_HTTP2),
    Ratio(("jpeg-grpc", 16), "CPU", FLOOR, 1.5),
    Ratio(("jpeg-grpc", 16), "CPU", GRPCIO_GEVENT, 0.5),
    Ratio(("jpeg-http", 16), "requests/s", STOCK, 1.2, least=True),
    Ratio(("fp32-http-b32", 16), "requests/s per core", STOCK, 3.0, least=True),
)
SHOWN = (
    Ratio(("jpeg-grpc", 16), "CPU", PERF_ANALYZER, 0.0),
    Ratio(("fp32-http-b32", 1), "requests/s per core", STOCK, 0.0),
)


def judge(measured: Measured, absent: Sequence[str]) -> int:
    """Every bound whose cell was measured, printed; the exit code."""
    bounds = Bounds(f"{OURS} over the other: medians of the ratios of the same repeat")
    for ratio in RATIOS:
        if ratio.cell in measured:
            judge_ratio(bounds, ratio, measured, absent)
    for ratio in SHOWN:
        found = ratio_of(ratio, measured)
        if found:
            bounds.beside(named(ratio), found.median, "x")
            bounds.ranged(found.range)
    for cell in measured:
        judge_against(bounds, cell, measured)
    for kind in KINDS:
        if (kind, 1) in measured:
            judge_latency(bounds, kind, measured)
    bounds.exactly(f"failures of {OURS}", failures(measured), 0)
    return bounds.exit_code()


def judge_ratio(bounds: Bounds, ratio: Ratio, measured: Measured, absent: Sequence[str]) -> None:
    """One ratio; a peer that is absent, or gave no figures, holds nobody to anything."""
    name, found = named(ratio), ratio_of(ratio, measured)
    if found is None:
        if ratio.other in absent:
            print(f"{name}: skipped, {ratio.other} was not found (--perf-analyzer PATH)", flush=True)
        elif ratio.other == PERF_ANALYZER:
            print(f"{name}: skipped, {ratio.other} gave {UNSTABLE}", flush=True)
        else:
            bounds.unread(name)
        return
    judged = bounds.at_least if ratio.least else bounds.at_most
    judged(name, found.median, ratio.bound, "x")
    bounds.ranged(found.range)


def ratio_of(ratio: Ratio, measured: Measured) -> Over | None:
    """Over repeats; None where either arm gave nothing."""
    arms = measured.get(ratio.cell, {})
    figure = FIGURES[ratio.of]
    return paired(
        arms.get(ratio.mine, []), arms.get(ratio.other) or [None] * len(arms.get(ratio.mine, [])),
        lambda mine, other: figure(mine) / figure(other),
    )  # fmt: skip


def judge_against(bounds: Bounds, cell: Cell, measured: Measured) -> None:
    """What a request costs the processor, over what it costs as another checkout has it.

    It is no slower where that cannot be said: some repeat shows it to be as fast.
    """
    if BEFORE in measured[cell]:
        ratio = Ratio(cell, "CPU", BEFORE, 1.0)
        found = ratio_of(ratio, measured)
        if found is None:
            bounds.unread(named(ratio))
            return
        bounds.beside(f"{named(ratio)}, median", found.median, "x")
        bounds.at_most(f"{named(ratio)}, least", found.low, ratio.bound, "x")
        bounds.ranged(found.range)


def named(ratio: Ratio) -> str:
    """What a row is called."""
    of = ratio.of if ratio.mine == OURS else f"{ratio.of} of {ratio.mine}"
    return f"{ratio.cell[0]} {ratio.cell[1]}: {of} / {ratio.other}"


def judge_latency(bounds: Bounds, kind: str, measured: Measured) -> None:
    """What the generator adds to the p50 of a plain socket, with one user."""
    arms = measured[(kind, 1)]
    added = added_p50(arms, OURS, FLOOR)
    if added is None:
        bounds.unread(f"{kind} 1: p50 added")
    else:
        bounds.at_most(f"{kind} 1: p50 added", added.median, ADDED_MS, "ms")
        bounds.ranged(added.range)
    library = added_p50(arms, GRPCIO, FLOOR) if GRPCIO in arms else None
    if library is not None:
        bounds.beside("  of that by grpcio alone", library.median, "ms")
        bounds.ranged(library.range)


def added_p50(arms: Mapping[str, Sequence[Told | None]], arm: str, floor: str) -> Over | None:
    """Milliseconds by which an arm's p50 is above another's, over repeats."""
    return paired(arms[arm], arms[floor], lambda mine, other: (mine.p50_ms or 0) - (other.p50_ms or 0))


def failures(measured: Measured) -> int:
    """Our failed requests, in all cells."""
    ours = [told for arms in measured.values() for name in OURSELVES for told in arms.get(name, [])]
    return sum(told.failures for told in ours if told is not None)
