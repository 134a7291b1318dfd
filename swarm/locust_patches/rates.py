"""The rates in Locust's statistics: over the time in which a row's cell was under load, as in the report.

Locust divides by the time of the whole test, of which a cell has a small part.
"""

from locust.stats import StatsEntry

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from users.result import MEASURE, is_measured, row_of

LATEST = 10
"""Whole seconds that a current rate is the mean of, at most."""
COUNTED = {
    "total_rps": ("rate", "requests"),
    "total_fail_per_sec": ("rate", "failures"),
    "current_rps": ("current", "requests"),
    "current_fail_per_sec": ("current", "failures"),
}
"""Locust's names of rates, and of whose counts they are."""
PHASES = ("warm-up", "measure", "drain")
Counts = dict[str, int]


@dataclass
class RowLoad:
    """One row of the statistics, by its windows; spans in nanoseconds, by repeat and worker."""

    counts: Counts = field(default_factory=lambda: {"requests": 0, "failures": 0})
    spans_ns: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    paced_ns: dict[int, int] = field(default_factory=dict)
    """By repeat, the length of an open-loop phase: its n arrivals span n - 1 gaps."""
    users_ns: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By repeat of a closed loop, the time of all users together, as drained workers tell; and how many."""

    def add(self, window: Mapping[str, Any], counts: Counts) -> None:
        """A window of one worker."""
        for name, count in counts.items():
            self.counts[name] += count
        if not window["last_end_ns"]:
            return  # nothing ended in it
        start_ns, end_ns = window["first_start_ns"], window["last_end_ns"]
        key = (window["repeat"], window["worker"])
        first_ns, last_ns = self.spans_ns.get(key, (start_ns, end_ns))
        self.spans_ns[key] = (min(first_ns, start_ns), max(last_ns, end_ns))

    def drained(self, record: Mapping[str, Any]) -> None:
        """What a worker says at the end of the measure phase."""
        repeat = record["repeat"]
        if record.get("due") is not None:
            self.paced_ns[repeat] = max(self.paced_ns.get(repeat, 0), record.get("phase_ns") or 0)
            return
        whole_ns, users = self.users_ns.get(repeat, (0, 0))
        told_ns, of = record.get("users_ns") or 0, record.get("users") or 0
        self.users_ns[repeat] = (whole_ns + told_ns, users + of)

    @property
    def seconds(self) -> float:
        """How long it was under load: in each repeat the longest span of a worker, or the mean of its users
        once they are told.
        """
        longest = dict(self.paced_ns)
        for (repeat, _), (first_ns, last_ns) in self.spans_ns.items():
            longest[repeat] = max(longest.get(repeat, 0), last_ns - first_ns)
        means = {repeat: ns / users for repeat, (ns, users) in self.users_ns.items() if ns and users}
        return sum((longest | means).values()) / 1e9


class Rates:
    """Hears the records of a study as they are written; `followed` once it does."""

    def __init__(self) -> None:
        self.followed = False
        self.clear()

    def clear(self) -> None:
        """Start afresh, as Locust's statistics do."""
        self._rows: dict[str, RowLoad] = {}
        self._now: tuple[str, int, str] | None = None
        """The cell, the repeat and the phase that are under load."""
        self._latest: deque[tuple[int, Counts]] = deque(maxlen=LATEST + 2)
        """Its last seconds; the first and the last of them may not be whole."""

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Any record of the ledger."""
        if record["kind"] == "window":
            self._add(record)
        elif record["kind"] == "drained":
            self._rows.setdefault(row_of(record["cell"], MEASURE), RowLoad()).drained(record)
        elif record["kind"] == "run":
            self._enter(None)

    def _add(self, window: Mapping[str, Any]) -> None:
        failures = sum(window["failures"].values())
        counts = {"requests": window["ok"] + failures, "failures": failures}
        name = row_of(window["cell"], window["phase"])
        self._rows.setdefault(name, RowLoad()).add(window, counts)
        now = (window["cell"], window["repeat"], window["phase"])
        if not self._is_over(*now):
            self._enter(now)
            self._count(window["second"], counts)

    def _is_over(self, cell: str, repeat: int, phase: str) -> bool:
        """Whether a later phase of that run is under load: a shipment is not in the order of phases."""
        if self._now is None or self._now[:2] != (cell, repeat):
            return False
        return PHASES.index(phase) < PHASES.index(self._now[2])

    def _enter(self, now: tuple[str, int, str] | None) -> None:
        if now != self._now:
            self._now = now
            self._latest.clear()

    def _count(self, second: int, counts: Counts) -> None:
        """Into its second, which another worker may have told of; seconds without an answer count, too."""
        if not self._latest:
            self._latest.append((second, dict(counts)))
            return
        while (last := self._latest[-1][0]) < second:
            self._latest.append((last + 1, {"requests": 0, "failures": 0}))
        for at, known in self._latest:
            if at == second:
                for name, count in counts.items():
                    known[name] += count

    def rate(self, row: str, count: str) -> float:
        """Requests or failures a second, over the time under load; all that was measured, of no row."""
        names = [row] if row else filter(is_measured, self._rows)
        rows = [self._rows[name] for name in names if name in self._rows]
        seconds = sum(one.seconds for one in rows)
        return sum(one.counts[count] for one in rows) / seconds if seconds else 0.0

    def current(self, row: str, count: str) -> float:
        """The mean of the last whole seconds of the row that is under load; 0 of any other."""
        now = row_of(self._now[0], self._now[2]) if self._now else ""
        if not now or not (row == now or (not row and is_measured(now))):
            return 0.0
        whole = [counts[count] for _, counts in self._latest][1:-1]
        return sum(whole) / len(whole) if whole else self.rate(now, count)


def correct_rates() -> None:
    """Have Locust's entries say these rates where their statistics follow a study."""
    for name, how in COUNTED.items():
        own = getattr(StatsEntry, name)
        if not hasattr(own.fget, "corrected"):
            setattr(StatsEntry, name, corrected(own, *how))


def corrected(own: property, how: str, count: str) -> property:
    """One of the rates of an entry; `own` is Locust's, for statistics that follow no study."""

    def read(entry: StatsEntry) -> Any:
        rates = getattr(entry.stats, "rates", None)
        if rates is None or not rates.followed:
            return own.__get__(entry)
        return getattr(rates, how)(entry.name if entry.method else "", count)

    read.corrected = True  # type: ignore[attr-defined]
    return property(read)
