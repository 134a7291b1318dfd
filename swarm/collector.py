"""The master's collector: every worker's windows into the ledger, and running totals of the current run."""

from __future__ import annotations

from locust.runners import Runner

from collections.abc import Callable
from typing import Any

from hdrh.histogram import HdrHistogram

from reports import histogram
from reports.ledger import LedgerWriter
from swarm.worker import PROGRESS, WINDOW


class Collector:
    """Writes what workers send, and knows how far the current phase has come."""

    def __init__(self, runner: Runner, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._ledger: LedgerWriter | None = None
        self._phase: tuple[str, int, str] = ("", 0, "")
        self._progress: dict[str, tuple[int, int]] = {}
        self._counted = (0, 0)
        self._service = histogram.empty()
        self.failures = self.requests = 0
        """Of the measure phases of the whole study so far."""
        self.fault = ""
        """Why the ledger cannot be written any more, or nothing."""
        runner.register_message(WINDOW, self._on_window)
        runner.register_message(PROGRESS, self._on_progress)

    def begin_study(self, ledger: LedgerWriter) -> None:
        """Write into this ledger from now on."""
        self._ledger = ledger
        self.failures = self.requests = 0
        self.fault = ""

    def begin_phase(self, cell: str, repeat: int, phase: str) -> None:
        """Count afresh for a phase of a run."""
        self._phase = (cell, repeat, phase)
        self._progress = {}
        self._counted = (0, 0)
        self._service = histogram.empty()

    @property
    def ok(self) -> int:
        """Successes of the current phase: as workers tell while it runs, as windows count once drained."""
        return max(self._counted[0], sum(ok for ok, _ in self._progress.values()))

    @property
    def failed(self) -> int:
        """Failures of the current phase, likewise."""
        return max(self._counted[1], sum(failed for _, failed in self._progress.values()))

    @property
    def service_time(self) -> HdrHistogram:
        """Service times of the current phase, from the windows that have arrived."""
        return self._service

    def _on_progress(self, msg: Any, **_: Any) -> None:
        data = msg.data
        if (data["cell"], data["repeat"], data["phase"]) == self._phase:
            self._progress[msg.node_id] = (data["ok"], data["failed"])

    def _on_window(self, msg: Any, **_: Any) -> None:
        window = {**msg.data, "worker": self._name_of(msg.node_id)}
        try:
            if self._ledger is not None:
                self._ledger.write(window)
        except OSError as error:
            self.fault = (
                f"the ledger cannot be written ({error.strerror}); free the disk or name another folder"
            )
        failed = sum(window["failures"].values())
        if window["phase"] == "measure":
            self.failures += failed
            self.requests += window["ok"] + failed
        if (window["cell"], window["repeat"], window["phase"]) == self._phase:
            self._counted = (self._counted[0] + window["ok"], self._counted[1] + failed)
            if "service_time" in window["histograms"]:
                self._service.decode_and_add(window["histograms"]["service_time"])

    def end_study(self) -> None:
        """Write no more."""
        self._ledger = None
