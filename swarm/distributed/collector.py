"""The master's collector: writes every worker's records to the ledger, and counts finished requests."""

from locust.runners import Runner

import time
from collections.abc import Callable, Mapping
from typing import Any

from reports.ledger.ledger import LedgerWriter
from swarm.distributed.protocol import PROGRESS, RECORDS, are_records, careful, is_progress
from swarm.distributed.raw_results import RawResults

Phase = tuple[str, int, str]
"""cell, repeat, phase"""


class Collector:
    """Writes what workers send, and tracks the progress of the current phase."""

    def __init__(self, runner: Runner, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._ledger: LedgerWriter | None = None
        self._phase: Phase = ("", 0, "")
        self._begun: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()
        self._progress: dict[str, tuple[int, int]] = {}
        self._counted = (0, 0)
        self.raw = RawResults(0)
        self.heard: dict[str, float] = {}
        """When each worker's last record arrived."""
        self.failures = self.requests = 0
        """Of all measure phases so far."""
        self.fault = ""
        """Why the ledger can no longer be written, or empty."""
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        """Other consumers of every record."""
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

    @property
    def ok(self) -> int:
        """Successes of the current phase: from workers' progress while it runs, from windows once drained."""
        return max(self._counted[0], sum(ok for ok, _ in self._progress.values()))

    @property
    def failed(self) -> int:
        """Failures of the current phase, likewise."""
        return max(self._counted[1], sum(failed for _, failed in self._progress.values()))

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
        """Between two runs, or two studies, workers report health each second, under the last one."""
        tag = (record["cell"], record["repeat"])
        return tag not in self._begun or (tag in self._ended and record["kind"] == "health")

    def _count(self, record: dict[str, Any]) -> None:
        if record["kind"] != "window":
            return
        failed = sum(record["failures"].values())
        if record["phase"] == "measure":
            self.failures += failed
            self.requests += record["ok"] + failed
        if (record["cell"], record["repeat"], record["phase"]) == self._phase:
            self._counted = (self._counted[0] + record["ok"], self._counted[1] + failed)

    def end_study(self) -> None:
        """Write no more."""
        self._ledger = None
