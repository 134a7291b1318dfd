"""What a worker sends unasked: windows and health when their second is over, progress in between."""

from __future__ import annotations

from locust.runners import Runner

import itertools
import time
from typing import Any

import gevent
from gevent.lock import RLock

from swarm.clock import NS_PER_S
from swarm.distributed.protocol import PROGRESS, PROGRESS_FIELDS, RECORDS
from swarm.distributed.recorder import Recorder
from swarm.distributed.tcp_stats import Connections
from swarm.distributed.worker_health import WorkerHealth
from users.load.assignment import Assignment

SHIP_EVERY_S = 0.1
RAW_AT_ONCE = 200
"""So many raw Results do not wait for their second's end: all at once they would hold a worker up."""
PROGRESS_PER_S = 1_000
"""Messages of progress that all workers together send in a second at most: ten times that stop a master."""
LEAST_HEALTH_NS = NS_PER_S // 10
"""Figures over less than this are noise."""


class Shipper:
    """Ships what is complete, ten times a second, and everything when told to."""

    def __init__(self, runner: Runner, recorder: Recorder) -> None:
        self._runner, self._recorder = runner, recorder
        self._health = WorkerHealth()
        self._connections = Connections()
        self._path_phase, self._path_since_ns = "", 0
        self._looking = RLock()
        self._told: tuple[Any, ...] = ()
        self._second = 0
        self._since_ns = time.perf_counter_ns()
        self.assignment: Assignment | None = None
        self.workers = 1
        """How many share the load."""
        runner.greenlet.spawn(self._ship)
        runner.greenlet.spawn(self._health.watch)

    def _ship(self) -> None:
        for tick in itertools.count():
            gevent.sleep(SHIP_EVERY_S)
            second = self._recorder.second(time.perf_counter_ns())
            if second > self._second:
                self._second = second
                self._send_second(second - 1)
            if self._recorder.raw_waiting >= RAW_AT_ONCE:
                self._send([])
            if tick % ticks_between(self.workers) == 0:
                self._tell_progress()

    def flush(self) -> None:
        """Ship everything recorded so far: a phase has ended, or this process is about to."""
        self._send(self._recorder.take_all())

    def mark(self) -> None:
        """A phase is about to change: what was until now belongs to the one that ends."""
        now_ns = time.perf_counter_ns()
        if now_ns - self._since_ns >= LEAST_HEALTH_NS:
            self._send(self._health_of(self._recorder.second(now_ns), now_ns))

    def begin_path(self, phase: str) -> None:
        """What connections do from now on belongs to this phase, until `end_path`."""
        assert self.assignment is not None
        with self._looking:
            self._connections.watch(self.assignment.endpoint.port)
            self._path_phase, self._path_since_ns = phase, time.perf_counter_ns()

    def end_path(self) -> None:
        """The phase's last request has come back."""
        with self._looking:
            self._send(self._path_of(self._recorder.second(time.perf_counter_ns())))
            self._path_phase = ""

    def _send_second(self, second: int) -> None:
        # In one message, since a thousand workers send it. Others run while many connections are looked at:
        # who ends the phase then waits, and finds this second sent.
        with self._looking:
            path, now_ns = self._path_of(second), time.perf_counter_ns()
            records = self._recorder.take_closed(now_ns)
            if now_ns - self._since_ns >= LEAST_HEALTH_NS:
                records += self._health_of(second, now_ns)
            self._send(records + path)

    def _path_of(self, second: int) -> list[dict[str, Any]]:
        assignment, now_ns = self.assignment, time.perf_counter_ns()
        if assignment is None or not self._path_phase:
            return []
        span_ns, self._path_since_ns = now_ns - self._path_since_ns, now_ns
        figures = self._connections.take()
        if not figures:
            return []
        head = {
            "kind": "path",
            "cell": assignment.cell,
            "repeat": assignment.repeat,
            "phase": self._path_phase,
        }
        return [{**head, "second": second, "span_ns": span_ns, "asked": assignment.connections, **figures}]

    def _health_of(self, second: int, now_ns: int) -> list[dict[str, Any]]:
        figures, assignment, span_ns = self._health.take(), self.assignment, now_ns - self._since_ns
        self._since_ns = now_ns
        if assignment is None:
            return []
        head = {
            "kind": "health",
            "cell": assignment.cell,
            "repeat": assignment.repeat,
            "phase": assignment.phase,
        }
        counts = {"in_flight": assignment.in_flight, "users": self._runner.user_count}
        return [{**head, "second": second, "span_ns": span_ns, **figures, **counts}]

    def _send(self, records: list[dict[str, Any]]) -> None:
        raw = self._recorder.take_raw()
        if records or raw:
            self._runner.send_message(RECORDS, {"records": records, "raw": raw})

    def _tell_progress(self) -> None:
        assignment, recorder = self.assignment, self._recorder
        counts = assignment and (
            assignment.cell,
            assignment.repeat,
            assignment.phase,
            recorder.ok,
            recorder.failed,
        )
        if counts and counts != self._told:
            self._runner.send_message(PROGRESS, dict(zip(PROGRESS_FIELDS, counts, strict=True)))
            self._told = counts


def ticks_between(workers: int) -> int:
    """Ticks of `SHIP_EVERY_S` from one message of progress to the next, where so many share the load.

    >>> ticks_between(100), ticks_between(1_000)
    (1, 10)
    """
    return max(1, round(workers / SHIP_EVERY_S / PROGRESS_PER_S))
