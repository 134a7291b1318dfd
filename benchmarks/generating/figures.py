"""Figures over repeats: medians, ratios of the same repeat, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.generating.arm import Told
from reports.format import MISSING, digits

Cell = tuple[str, int]
"""A kind of request and a number of users."""
Measured = Mapping[Cell, Mapping[str, Sequence[Told | None]]]
"""By cell and by arm: one per repeat, None where the arm gave no figures in it."""
BUSY = 0.9
"""A client below this share of its core was not what limited requests/s."""
UNSTABLE = "no stable measurement"
HEADINGS = (
    "request", "users", "arm", "requests/s", "core used", "CPU a request, ms", "requests/s per core",
    "p50, ms", "failed", "CPU against inferswarm's",
)  # fmt: skip


@dataclass(frozen=True)
class Over:
    """A figure over repeats: its median, and the least and the most of it."""

    median: float
    low: float
    high: float

    @property
    def range(self) -> str:
        """Least and most."""
        return f"{digits(self.low)} to {digits(self.high)}"


def over(values: Iterable[float]) -> Over | None:
    """Of values; None where there are none."""
    kept = sorted(values)
    return Over(statistics.median(kept), kept[0], kept[-1]) if kept else None


def paired(
    ours: Sequence[Told | None],
    others: Sequence[Told | None],
    figure: Callable[[Told, Told], float],
) -> Over | None:
    """A figure of two arms, of each repeat in which both gave one."""
    both = zip(ours, others, strict=True)
    return over(figure(mine, other) for mine, other in both if mine is not None and other is not None)


def cpu_ms(told: Told) -> float:
    """Milliseconds of processor a request."""
    return told.cpu_s * 1e3 / told.requests


def per_core(told: Told) -> float:
    """Requests a second that a whole core would send."""
    return told.requests / told.cpu_s


def per_s(told: Told) -> float:
    """Requests a second, as they were sent."""
    return told.requests / told.wall_s if told.own_per_s is None else told.own_per_s


def used(told: Told) -> float:
    """The share of a core that the client used."""
    return told.cpu_s / told.wall_s


def row(cell: Cell, arm: str, told: Sequence[Told | None], ours: Sequence[Told | None]) -> list[str]:
    """One line of the table."""
    kept = [one for one in told if one is not None]
    start = [cell[0], f"{cell[1]}", arm]
    if not kept:
        return [*start, UNSTABLE, *[MISSING] * (len(HEADINGS) - 4)]
    share = statistics.median(map(used, kept))
    p50s = over(one.p50_ms for one in kept if one.p50_ms is not None)
    ratio = paired(told, ours, lambda one, mine: cpu_ms(one) / cpu_ms(mine))
    return [
        *start,
        digits(statistics.median(map(per_s, kept))),
        f"{share:.0%}" + ("" if share >= BUSY else " *"),
        digits(statistics.median(map(cpu_ms, kept))),
        digits(statistics.median(map(per_core, kept))),
        digits(p50s.median) if p50s else MISSING,
        f"{sum(one.failures for one in kept):,}",
        f"{digits(ratio.median)} ({ratio.range})" if ratio and told is not ours else MISSING,
    ]


def table(measured: Measured, mine: str) -> str:
    """All arms of all cells in Markdown."""
    lines = [list(HEADINGS), ["---"] * 3 + ["---:"] * (len(HEADINGS) - 3)]
    for cell, arms in measured.items():
        lines += [row(cell, arm, told, arms[mine]) for arm, told in arms.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
