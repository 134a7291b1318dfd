"""The worker's recorder: sole consumer of Results, which it folds into Windows of one second."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from hdrh.histogram import HdrHistogram

from reports import histogram
from users.result import Result

Key = tuple[str, int, str, int]
"""cell, repeat, phase, second (of the wall clock, by which a Result ended)"""


@dataclass
class Window:
    """One second of one run on one worker."""

    ok: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    abandoned: int = 0
    images: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    server_ns: dict[str, int] = field(default_factory=dict)
    server_count: int = 0
    first_start_ns: int = 0
    last_end_ns: int = 0
    histograms: dict[str, HdrHistogram] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count one Result."""
        self.first_start_ns = min(self.first_start_ns or result.start_ns, result.start_ns)
        self.last_end_ns = max(self.last_end_ns, result.end_ns)
        if result.abandoned:
            self.abandoned += 1
        elif result.error is not None:
            self.failures[result.error.kind] = self.failures.get(result.error.kind, 0) + 1
            self._record("failed", result.latency_ns)
        else:
            self._add_success(result)

    def _add_success(self, result: Result) -> None:
        self.ok += 1
        self.images += result.images
        self.request_bytes += result.request_bytes
        self.response_bytes += result.response_bytes
        self._record("latency", result.latency_ns)
        self._record("service_time", result.service_ns)
        self._record("send_delay", result.send_delay_ns)
        if result.server_ns:
            self.server_count += 1
            for part, value_ns in result.server_ns.items():
                self.server_ns[part] = self.server_ns.get(part, 0) + value_ns

    def _record(self, name: str, value_ns: int) -> None:
        if name not in self.histograms:
            self.histograms[name] = histogram.empty()
        histogram.record_ns(self.histograms[name], value_ns)

    def to_record(self, key: Key) -> dict[str, Any]:
        """As the ledger keeps it; the master adds which worker it came from."""
        cell, repeat, phase, second = key
        encoded = {name: made.encode().decode("ascii") for name, made in self.histograms.items()}
        values = {name: value for name, value in vars(self).items() if name != "histograms"}
        head = {"kind": "window", "cell": cell, "repeat": repeat, "phase": phase, "second": second}
        return {**head, **values, "histograms": encoded}


class Recorder:
    """Takes Results one by one, gives Windows back when their second is over."""

    def __init__(self) -> None:
        # The wall clock is read once: durations and the order of windows come from the monotonic clock.
        self._anchor_ns = time.time_ns() - time.perf_counter_ns()
        self._windows: dict[Key, Window] = {}
        self._users: set[int] = set()
        self.ok = self.failed = self.abandoned = 0

    def begin_phase(self) -> None:
        """Count afresh: the progress counters are of one phase."""
        self.ok = self.failed = self.abandoned = 0
        self._users = set()

    def add(self, result: Result) -> None:
        """Record one Result."""
        second = (result.end_ns + self._anchor_ns) // 1_000_000_000
        key = (result.cell, result.repeat, result.phase, second)
        self._windows.setdefault(key, Window()).add(result)
        if result.abandoned:
            self.abandoned += 1
            return
        self.ok += result.ok
        self.failed += not result.ok
        self._users.add(result.user)

    def take_closed(self, now_ns: int) -> list[dict[str, Any]]:
        """The records of the windows whose second ended before `now_ns` (`perf_counter_ns`)."""
        second = (now_ns + self._anchor_ns) // 1_000_000_000
        return [self._take(key) for key in sorted(self._windows) if key[3] < second]

    def take_all(self) -> list[dict[str, Any]]:
        """The records of all windows, the current one too."""
        return [self._take(key) for key in sorted(self._windows)]

    def _take(self, key: Key) -> dict[str, Any]:
        return self._windows.pop(key).to_record(key)

    @property
    def users(self) -> int:
        """How many users finished a request in the phase."""
        return len(self._users)
