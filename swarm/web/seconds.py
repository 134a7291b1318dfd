"""The seconds of the running cell, each folded once, when its records are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reports.fold.timeline import Second
from reports.ledger import Record
from swarm.web.folding import second_of

WAIT_S = 2.5
"""From a second's last record to its folding: all is in by then, unless a connection hangs."""
KINDS = frozenset({"window", "health", "sample", "phase"})
MS = 1e6
DIGITS = 4
COLUMNS = (
    *("t_s", "cell", "repeat", "phase", "images_per_s", "failures_per_s"),
    *("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "in_flight", "users", "worker_cpu_pct"),
    *("loop_lag_ms", "server_queue_ms", "server_compute_ms", "executed_batch", "pending_requests"),
    *("gpu_util_pct", "gpu_memory_bytes", "gpu_power_w"),
)
"""Of each row that `row_of` makes: timeline.csv's names, but that `t_s` is Unix time."""


class Seconds:
    """Gathers the records of one run, `entry` of the plan; the clock's time comes in with each."""

    def __init__(self, entry: Record) -> None:
        self._entry = entry
        self._waiting: dict[int, tuple[float, list[Record]]] = {}
        self._phases: list[Record] = []
        self._sample: Record | None = None
        self._folded: set[int] = set()
        self.late = 0
        """Records of seconds that had been folded: of a worker whose clock is behind, or that hung."""

    def add(self, record: Record, now: float) -> Iterator[Second]:
        """Take one record; the seconds that it is time to fold, in order."""
        if record["kind"] == "phase":
            self._phases.append(record)
        elif record["second"] in self._folded:
            self.late += 1
        else:
            _, records = self._waiting.get(record["second"], (now, []))
            self._waiting[record["second"]] = (now, [*records, record])
        yield from self._fold(at for at, (heard, _) in self._waiting.items() if now - heard >= WAIT_S)

    def rest(self) -> Iterator[Second]:
        """What still waits: the run is over."""
        yield from self._fold(self._waiting)

    def _fold(self, due: Iterable[int]) -> Iterator[Second]:
        for at in sorted(due):
            _, records = self._waiting.pop(at)
            before = [self._sample] if self._sample and self._sample["second"] == at - 1 else []
            self._sample = next((of for of in records if of["kind"] == "sample"), self._sample)
            self._folded.add(at)
            yield second_of(self._entry, at, [*self._phases, *before, *records])


def row_of(second: Second) -> list[Any]:
    """One second in the order of COLUMNS, to four digits."""
    return [value_of(second, column) for column in COLUMNS]


def value_of(second: Second, column: str) -> Any:
    """A column's value; times are held in nanoseconds."""
    if not column.endswith("_ms"):
        return short(getattr(second, column))
    value_ns = getattr(second, column.removesuffix("_ms") + "_ns")
    return None if value_ns is None else short(value_ns / MS)


def short(value: Any) -> Any:
    """A fraction to four digits, for it is sent every second; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
