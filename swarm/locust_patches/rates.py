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


@dataclass
class PhaseLoad:
    """The phase that a run is in, and its last seconds, of which the first and the last may not be whole."""

    phase: str
    latest: deque[tuple[int, Counts]] = field(default_factory=lambda: deque(maxlen=LATEST + 2))

    def count(self, second: int, counts: Counts) -> None:
        """Into its second, which another worker may have told of; seconds without an answer count, too."""
        if not self.latest:
            self.latest.append((second, dict(counts)))
            return
        while (last := self.latest[-1][0]) < second:
            self.latest.append((last + 1, {"requests": 0, "failures": 0}))
        for at, known in self.latest:
            if at == second:
                for name, count in counts.items():
                    known[name] += count

    @property
    def young(self) -> bool:
        """Whether it has no whole second yet."""
        return len(self.latest) < 3

    def mean(self, count: str) -> float:
        """Of its whole seconds."""
        whole = [counts[count] for _, counts in self.latest][1:-1]
        return sum(whole) / len(whole)


class Rates:
    """Hears the records of a study as they are written; `followed` once it does."""

    def __init__(self) -> None:
        self.followed = False
        self.clear()

    def clear(self) -> None:
        """Start afresh, as Locust's statistics do."""
        self._rows: dict[str, RowLoad] = {}
        self._now: dict[tuple[str, int], PhaseLoad] = {}
        """By cell and repeat, of the runs that are under load."""
        self._began = ""
        """The first cell of them."""
        self._first: dict[str, str] = {}
        """That of those with which a row was measured at the same time."""

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Any record of the ledger."""
        if record["kind"] == "window":
            self._add(record)
        elif record["kind"] == "drained":
            self._rows.setdefault(row_of(record["cell"], MEASURE), RowLoad()).drained(record)
        elif record["kind"] == "run":
            self._now.clear()
            self._began = (self._began or record["cell"]) if record["event"] == "start" else ""
            if self._began:
                self._first[row_of(record["cell"], MEASURE)] = self._began

    def _add(self, window: Mapping[str, Any]) -> None:
        failures = sum(window["failures"].values())
        counts = {"requests": window["ok"] + failures, "failures": failures}
        name = row_of(window["cell"], window["phase"])
        self._rows.setdefault(name, RowLoad()).add(window, counts)
        tag, phase = (window["cell"], window["repeat"]), window["phase"]
        now = self._now.get(tag)
        # A shipment is not in the order of phases: an earlier one is over.
        if now is None or PHASES.index(phase) > PHASES.index(now.phase):
            now = self._now[tag] = PhaseLoad(phase)
        if phase == now.phase:
            now.count(window["second"], counts)

    def rate(self, row: str, count: str) -> float:
        """Requests or failures a second, over the time under load; all that was measured, of no row."""
        names = [row] if row else filter(is_measured, self._rows)
        rows = {name: self._rows[name] for name in names if name in self._rows}
        seconds: dict[str, float] = {}
        for name, one in rows.items():
            first = self._first.get(name, name)
            seconds[first] = max(seconds.get(first, 0.0), one.seconds)
        whole = sum(seconds.values())
        return sum(one.counts[count] for one in rows.values()) / whole if whole else 0.0

    def current(self, row: str, count: str) -> float:
        """The mean of the last whole seconds of the row, or of all that is measured; 0 of any other."""
        rows = {row_of(cell, now.phase): now for (cell, _), now in self._now.items()}
        chosen = {name: now for name, now in rows.items() if name == row or (not row and is_measured(name))}
        return sum(self.rate(name, count) if now.young else now.mean(count) for name, now in chosen.items())


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
