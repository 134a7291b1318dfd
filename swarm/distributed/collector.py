"""The master's collector: writes every worker's records to the ledger, and counts finished requests."""

from locust.runners import Runner

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reports.ledger.ledger import LedgerWriter, Tag, tag_of
from swarm.distributed.protocol import PROGRESS, RECORDS, are_records, careful, is_progress
from swarm.distributed.raw_results import RawResults, Rows


@dataclass
class PhaseProgress:
    """What came back in the current phase of a run, by worker as they tell it, and by windows."""

    phase: str
    told: dict[str, tuple[int, int]] = field(default_factory=dict)
    ok: int = 0
    failed: int = 0


class Collector:
    """Writes what workers send, and tracks the progress of the current phase."""

    def __init__(self, runner: Runner, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._ledger: LedgerWriter | None = None
        self._current: dict[Tag, PhaseProgress] = {}
        """Of the runs under way."""
        self._begun: set[Tag] = set()
        self._ended: set[Tag] = set()
        self.raw = RawResults(0)
        self.heard: dict[str, float] = {}
        """When each worker's last record arrived."""
        self.failures = self.requests = 0
        """Of all measure phases so far."""
        self.fault = ""
        """Why the ledger can no longer be written, or empty."""
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        """Other consumers of every record."""
        self.on_traced: Callable[[str, list[Rows], int], None] = lambda worker, rows, untold: None
        """Told of the requests of a worker that carried a traceparent, and how many more there were."""
        runner.register_message(RECORDS, careful(RECORDS, are_records, self._on_records))
        runner.register_message(PROGRESS, careful(PROGRESS, is_progress, self._on_progress))

    def begin_study(self, ledger: LedgerWriter, raw_results: int = 0) -> None:
        """Write into this ledger from now on, and keep so many raw Results."""
        self._ledger = ledger
        self._begun, self._ended = set(), set()
        self.raw = RawResults(raw_results)
        self.failures = self.requests = 0
        self.fault = ""

    def begin_phase(self, runs: Iterable[Tag], phase: str) -> None:
        """Count afresh for a phase of the runs that are under way at the same time."""
        self._current = {tag: PhaseProgress(phase) for tag in runs}
        self._begun |= self._current.keys()

    def ok(self, tag: Tag) -> int:
        """Successes of a run's phase: from workers' progress while it runs, from windows once drained."""
        now = self._current[tag]
        return max(now.ok, sum(ok for ok, _ in now.told.values()))

    def failed(self, tag: Tag) -> int:
        """Failures of a run's phase, likewise."""
        now = self._current[tag]
        return max(now.failed, sum(failed for _, failed in now.told.values()))

    def write(self, record: dict[str, Any]) -> None:
        """Writes to the ledger; a full disk is stored as the collector's fault and raises nothing."""
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
            self._ended.add(tag_of(record))

    def _on_progress(self, msg: Any, **_: Any) -> None:
        data = msg.data
        now = self._current.get(tag_of(data))
        if now and now.phase == data["phase"]:
            now.told[msg.node_id] = (data["ok"], data["failed"])

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
            if tag_of(rows) in self._begun:
                self.raw.add(worker, rows)
        if "traced" in msg.data:
            begun = [rows for rows in msg.data["traced"] if tag_of(rows) in self._begun]
            self.on_traced(worker, begun, msg.data["untold"])

    def _of_idle(self, record: Mapping[str, Any]) -> bool:
        """Between two runs, or two studies, workers report health each second, under the last one."""
        tag = tag_of(record)
        return tag not in self._begun or (tag in self._ended and record["kind"] == "health")

    def _count(self, record: dict[str, Any]) -> None:
        if record["kind"] != "window":
            return
        failed = sum(record["failures"].values())
        if record["phase"] == "measure":
            self.failures += failed
            self.requests += record["ok"] + failed
        now = self._current.get(tag_of(record))
        if now and now.phase == record["phase"]:
            now.ok += record["ok"]
            now.failed += failed

    def end_study(self) -> None:
        """Write no more."""
        self._ledger = None
