"""The seconds of the running cell, each folded when its records are in, and again where one comes late."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.fold.records import readable
from reports.fold.run_records import RunRecords, Second, planned_of
from reports.fold.timeline import TimelineSecond, second_of
from reports.ledger.ledger import Record
from reports.study.summarise import summarise
from reports.summary.summary import Summary

WAIT_S = 2.5
"""From a second's last record to its folding: all is in by then, unless a connection hangs."""
HELD_S = 30
"""How far a second may lie from the sampler's latest, which is by this host's clock, and still be folded."""
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


@dataclass
class HeldSecond:
    """One second so far; when the last record of it came, and those that came since it was folded."""

    came: float = 0.0
    fresh: list[Record] = field(default_factory=list)
    here: Second = field(default_factory=Second)
    samples: list[Record] = field(default_factory=list)

    def fold(self) -> None:
        """Adds up what is fresh."""
        self.samples += [record for record in self.fresh if record["kind"] == "sample"]
        self.here.add(readable([record for record in self.fresh if record["kind"] != "sample"]))
        self.fresh = []


class Seconds:
    """Gathers the records of one run, `entry` of the plan; the clock's time comes in with each."""

    def __init__(self, entry: Record) -> None:
        self._planned = planned_of(entry)
        self._held: dict[int, HeldSecond] = {}
        self._phases: list[Record] = []
        self._here = 0
        """The sampler's latest second; 0 until there is one."""
        self.late = 0
        """How many records were too far off in time to be folded."""

    def add(self, record: Record, now: float) -> Iterator[TimelineSecond]:
        """Take one record; the seconds that it is time to fold, in order. One may come a second time."""
        if record["kind"] == "phase":
            self._phases.append(record)
        else:
            self._hold(record, now)
        # A clock that is ahead tells of seconds that are still to come.
        past = [at for at in self._held if at <= self._here or not self._here]
        yield from self._fold(at for at in past if now - self._held[at].came >= WAIT_S)

    def rest(self) -> Iterator[TimelineSecond]:
        """What still waits: the run is over."""
        yield from self._fold(self._held)

    def _hold(self, record: Record, now: float) -> None:
        held = self._held.setdefault(record["second"], HeldSecond())
        held.fresh.append(record)
        held.came = now
        if record["kind"] == "sample":
            self._here = max(self._here, record["second"])
        # Until the sampler has spoken, nobody knows whose clock is wrong.
        far = [at for at in self._held if self._here and abs(at - self._here) > HELD_S]
        for at in far:
            self.late += len(self._held.pop(at).fresh)

    def _fold(self, seconds: Iterable[int]) -> Iterator[TimelineSecond]:
        for at in sorted(at for at in seconds if self._held[at].fresh):
            held, before = self._held[at], self._held.get(at - 1, HeldSecond())
            held.fold()
            samples = {at: held.samples, at - 1: before.samples}
            yield second_of(self._planned, at, self._phases, held.here, samples)


def row_of(second: TimelineSecond) -> list[Any]:
    """One second in the order of COLUMNS, to four digits."""
    return [value_of(second, column) for column in COLUMNS]


def value_of(second: TimelineSecond, column: str) -> Any:
    """A column's value; times are held in nanoseconds."""
    if not column.endswith("_ms"):
        return short(getattr(second, column))
    value_ns = getattr(second, column.removesuffix("_ms") + "_ns")
    return None if value_ns is None else short(value_ns / MS)


def short(value: Any) -> Any:
    """A fraction to four digits, for it is sent every second; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def summary_of(header: Record, entry: Record, records: Iterable[Record]) -> Summary:
    """The Summary of the planned run `entry`, the same as the report's. KeyError, ValueError as it raises."""
    run = RunRecords(planned_of(entry))
    for record in records:
        run.add(record)
    return summarise(run.settled(), header.get("options") or {}, header.get("links") or ())


def entry_of(plan: Sequence[Record], record: Mapping[str, Any]) -> Record:
    """What was planned of the run that a record belongs to. KeyError where it was not planned."""
    for entry in plan:
        if (entry["cell"], entry["repeat"]) == (record["cell"], record["repeat"]):
            return entry
    raise KeyError(f"{record['cell']} was not planned")
