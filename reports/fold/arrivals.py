"""How a run kept to its intended starts: how many were late, and what an open load asked for and got."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.ledger.ledger import Record


@dataclass(frozen=True)
class Offered:
    """What an open load sent: the sum of the workers' rates, how many they are, their phase's mean length."""

    per_s: float
    workers: int
    phase_s: float


@dataclass(frozen=True)
class Arrivals:
    """Counts of the measure phase; None where the ledger does not say, and but for `late` in closed load.

    `due` are the arrivals whose time came, `dropped` those of them that were never sent, `overslept` those
    that were sent late though a user was free.
    """

    late: int | None = None
    due: int | None = None
    dropped: int | None = None
    overslept: int | None = None
    offered: Offered | None = None


def arrivals(load: str, windows: Sequence[Record], drained: Sequence[Record]) -> Arrivals:
    """From the windows and the drained lines of the measure phase."""
    late = _sum([window.get("late") for window in windows])
    if load != "open":
        return Arrivals(late=late)
    took_part = [line for line in drained if line.get("phase_ns")]
    counts = {name: _sum([line.get(name) for line in took_part]) for name in ("due", "dropped", "overslept")}
    return Arrivals(late=late, offered=_offered(took_part) if took_part else None, **counts)


def _offered(took_part: Sequence[Record]) -> Offered:
    phases_s = [line["phase_ns"] / 1e9 for line in took_part]
    rates = (line["sent"] / phase_s for line, phase_s in zip(took_part, phases_s, strict=True))
    return Offered(per_s=sum(rates), workers=len(took_part), phase_s=fmean(phases_s))


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum where every part is known; None else, and where there is none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
