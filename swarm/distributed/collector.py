"""The master's collector: every worker's records into the ledger, and the current phase, second by second."""

from locust.runners import Runner

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reports.histogram import buckets, codec
from reports.histogram.buckets import Buckets
from reports.ledger.ledger import LedgerWriter
from swarm.distributed.protocol import PROGRESS, RECORDS, are_records, careful, is_progress
from swarm.distributed.raw_results import RawResults

Phase = tuple[str, int, str]
"""cell, repeat, phase"""
KEPT = 60
"""Seconds that are kept one by one: more than any verdict looks back at."""


@dataclass(frozen=True)
class SecondStats:
    """One second of a phase, all workers together; `latencies` are encoded histograms of the successes."""

    finished: int
    latencies: tuple[str, ...]


class PhaseStats:
    """Gathers the windows of one phase.

    Workers' clocks are not compared: each worker's seconds are counted from its own first one in this phase,
    and a second is complete once every worker has told how it fared in it.
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._finished: dict[int, int] = {}
        self._latencies: dict[int, list[str]] = {}
        self._latency, self._unmerged = buckets.EMPTY, list[str]()
        self._counters: deque[Mapping[str, int]] = deque(maxlen=KEPT)

    def add_window(self, window: Mapping[str, Any]) -> None:
        """One worker's second."""
        at = self._index(window)
        self._finished[at] = self._finished.get(at, 0) + window["ok"] + sum(window["failures"].values())
        if "latency" in window["histograms"]:
            text = window["histograms"]["latency"]
            self._latencies.setdefault(at, []).append(text)
            self._unmerged.append(text)
            if len(self._unmerged) == codec.AT_ONCE:
                self._merge()
        forget(self._finished, at - KEPT)
        forget(self._latencies, at - KEPT)

    @property
    def latency(self) -> Buckets:
        """Of all successes that have come."""
        self._merge()
        return self._latency

    def _merge(self) -> None:
        # many at once take a quarter of the time, which a thousand workers' master has not
        self._latency = buckets.compact([self._latency, *codec.decoded_all(self._unmerged)])
        self._unmerged.clear()

    def add_health(self, health: Mapping[str, Any]) -> None:
        """A worker's second is over."""
        self._told[health["worker"]] = self._index(health)

    def _index(self, record: Mapping[str, Any]) -> int:
        first = self._first.setdefault(record["worker"], record["second"])
        return int(record["second"]) - first

    def add_sample(self, sample: Mapping[str, Any]) -> None:
        """The server's counters, where this second's reading has them and it has computed since the last."""
        counters = sample.get("server", {})
        if "compute_ns" not in counters:
            return
        if not self._counters or counters["executions"] != self._counters[-1]["executions"]:
            self._counters.append(counters)

    @property
    def complete(self) -> int:
        """How many seconds are complete, the first not counted."""
        return max(0, min(self._told.values(), default=0))

    @property
    def compute_ns(self) -> list[float]:
        """The server's compute time per execution, from each of the latest readings to the next with any."""
        return [
            (after["compute_ns"] - before["compute_ns"]) / executions
            for before, after in pairwise(self._counters)
            if (executions := after["executions"] - before["executions"]) > 0
        ]

    @property
    def seconds(self) -> list[SecondStats]:
        """The latest complete seconds, without the first, in which the phase began."""
        return [
            SecondStats(self._finished.get(at, 0), tuple(self._latencies.get(at, ())))
            for at in range(max(1, self.complete + 1 - KEPT), self.complete + 1)
        ]


def forget(held: dict[int, Any], last: int) -> None:
    """Drop the seconds up to `last`, which came first: a phase may last for days."""
    while held and (oldest := next(iter(held))) <= last:
        del held[oldest]


class Collector:
    """Writes what workers send, and knows how far the current phase has come."""

    def __init__(self, runner: Runner, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._ledger: LedgerWriter | None = None
        self._phase: Phase = ("", 0, "")
        self._begun: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()
        self._progress: dict[str, tuple[int, int]] = {}
        self._counted = (0, 0)
        self.raw = RawResults(0)
        self.phase_stats = PhaseStats()
        """The current phase, second by second."""
        self.heard: dict[str, float] = {}
        """When each worker's last record came."""
        self.failures = self.requests = 0
        """Of the measure phases of the whole study so far."""
        self.fault = ""
        """Why the ledger cannot be written any more, or nothing."""
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        """Who else wants every record."""
        runner.register_message(RECORDS, careful(RECORDS, are_records, self._on_records))
        runner.register_message(PROGRESS, careful(PROGRESS, is_progress, self._on_progress))

    def begin_study(self, ledger: LedgerWriter, raw_results: int = 0) -> None:
        """Write into this ledger from now on, and keep so many raw Results."""
        self._ledger = ledger
        self._begun, self._ended = set(), set()
        self.raw = RawResults(raw_results)
        self.failures = self.requests = 0
        self.fault = ""

    def begin_phase(self, cell: str, repeat: int, phase: str) -> None:
        """Count afresh for a phase of a run."""
        self._phase = (cell, repeat, phase)
        self._begun.add((cell, repeat))
        self._progress = {}
        self._counted = (0, 0)
        self.phase_stats = PhaseStats()

    @property
    def ok(self) -> int:
        """Successes of the current phase: as workers tell while it runs, as windows count once drained."""
        return max(self._counted[0], sum(ok for ok, _ in self._progress.values()))

    @property
    def failed(self) -> int:
        """Failures of the current phase, likewise."""
        return max(self._counted[1], sum(failed for _, failed in self._progress.values()))

    def write(self, record: dict[str, Any]) -> None:
        """Into the ledger; a full disk is remembered as the collector's fault and raises nothing."""
        try:
            if self._ledger is not None:
                self._ledger.write(record)
        except OSError as error:
            self.fault = (
                f"the ledger cannot be written ({error.strerror}); free the disk or name another folder"
            )
        for listener in self.listeners:
            listener(record)
        if record["kind"] == "run" and record["event"] == "end":
            self._ended.add((record["cell"], record["repeat"]))

    def _on_progress(self, msg: Any, **_: Any) -> None:
        data = msg.data
        if (data["cell"], data["repeat"], data["phase"]) == self._phase:
            self._progress[msg.node_id] = (data["ok"], data["failed"])

    def _on_records(self, msg: Any, **_: Any) -> None:
        self.heard[msg.node_id] = time.monotonic()
        worker = self._name_of(msg.node_id)
        for record in msg.data["records"]:
            if self._of_idle(record):
                continue
            record["worker"] = worker
            self.write(record)
            self._count(record)
        for rows in msg.data["raw"]:
            if (rows["cell"], rows["repeat"]) in self._begun:
                self.raw.add(worker, rows)

    def _of_idle(self, record: Mapping[str, Any]) -> bool:
        """Between two runs, or two studies, workers still tell each second how they fare, by the last one."""
        tag = (record["cell"], record["repeat"])
        return tag not in self._begun or (tag in self._ended and record["kind"] == "health")

    def _count(self, record: dict[str, Any]) -> None:
        current = (record["cell"], record["repeat"], record["phase"]) == self._phase
        if record["kind"] == "window":
            failed = sum(record["failures"].values())
            if record["phase"] == "measure":
                self.failures += failed
                self.requests += record["ok"] + failed
            if current:
                self._counted = (self._counted[0] + record["ok"], self._counted[1] + failed)
                self.phase_stats.add_window(record)
        elif current:
            self.phase_stats.add_health(record)

    def add_sample(self, record: dict[str, Any]) -> None:
        """What the sampler read of the servers in a second."""
        self.write(record)
        if (record["cell"], record["repeat"], record["phase"]) == self._phase:
            self.phase_stats.add_sample(record)

    def end_study(self) -> None:
        """Write no more."""
        self._ledger = None
