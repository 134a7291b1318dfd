"""What a worker sends by itself: windows and health when their second is over, progress in between.

Health is the state of the generator itself: processor, lag of the event loop, garbage collection.
"""

from locust.runners import Runner

import gc
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gevent
from gevent.lock import RLock
from gevent.monkey import get_original

from reports.histogram import codec
from swarm.clock import NS_PER_S
from swarm.distributed.protocol import PROGRESS, PROGRESS_FIELDS, RECORDS
from swarm.distributed.recorder import Recorder
from swarm.distributed.tcp_stats import Connections
from swarm.taken_cpu import TakenCpu
from users.http2 import figures as http2
from users.load.assignment import Assignment
from users.transport.sockets import take_starts

SHIP_EVERY_S = 0.1
RAW_AT_ONCE = 200
"""This many raw Results are sent before their second ends: all at once would block a worker."""
PROGRESS_PER_S = 1_000
"""Progress messages per second of all workers together, at most: ten times as many stop a master."""
LEAST_HEALTH_NS = NS_PER_S // 10
"""Figures over less than this are noise."""
LOOK_S = 0.02
"""How long the lag probe sleeps on average; what it oversleeps is the lag (timers cause up to 1 ms of it)."""
LOOKS_A_LOCK = 5
"""Of so many looks one also asks for the interpreter lock: where a thread keeps it, that costs 5 ms."""


def yield_lock() -> None:
    """Let go of the interpreter lock and take it again: at once, where no other thread wants it."""
    get_original("time", "sleep")(0)


def loop_thread_ns(schedstat: Path = Path("/proc/self/schedstat")) -> tuple[int, int] | None:
    """How long this process's main thread, which runs the event loop, has run and has waited for a processor.

    The first two numbers of Linux's `/proc/self/schedstat` (Documentation/scheduler/sched-stats.rst); None
    where the kernel does not tell.
    """
    try:
        ran_ns, waited_ns, _ = map(int, schedstat.read_text().split())
    except (OSError, ValueError):
        return None
    # Three zeros are a kernel that does not count: who reads this has run.
    return (ran_ns, waited_ns) if ran_ns else None


class GcPauses:
    """Counts and times garbage collections while it is installed."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._began_ns: int | None = None
        self.count = self.total_ns = self.max_ns = 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """What `gc.callbacks` calls before and after each collection."""
        if phase == "start":
            self._began_ns = self._clock()
        elif self._began_ns is not None:
            pause_ns = self._clock() - self._began_ns
            self.count += 1
            self.total_ns += pause_ns
            self.max_ns = max(self.max_ns, pause_ns)

    def take(self) -> dict[str, int]:
        """The figures since the last take."""
        taken = {"gc_pauses": self.count, "gc_ns": self.total_ns, "gc_max_ns": self.max_ns}
        self.count = self.total_ns = self.max_ns = 0
        return taken


class WorkerHealth:
    """Watches this process; `cpu_s` says how much processor time all its threads have used, `thread_ns` how
    long the thread of the event loop has run, and was ready to run and had no processor. `taken` tells what
    quotas and other hosts took, and `yield_lock` gives other threads the interpreter lock for a moment.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], None] = gevent.sleep,
        cpu_s: Callable[[], float] = time.process_time,
        thread_ns: Callable[[], tuple[int, int] | None] = loop_thread_ns,
        taken: Callable[[], dict[str, float | int]] | None = None,
        yield_lock: Callable[[], None] = yield_lock,
    ) -> None:
        self._clock, self._sleep, self._yield_lock = clock, sleep, yield_lock
        self._taken = taken or TakenCpu().take
        self._cpu_s, self._thread_ns = cpu_s, thread_ns
        self._thread_last_ns = thread_ns()
        self._random = random.Random()
        self._lags_ns: list[int] = []
        self._looks = itertools.count(1)
        self._lock_waits_ns: list[int] = []
        self._pauses = GcPauses(clock)
        self._taken_ns, self._used_s = clock(), self._cpu_s()
        gc.callbacks.append(self._pauses)

    def watch(self) -> None:
        """Sleep and measure, forever."""
        while True:
            self.look()

    def look(self) -> None:
        """Sleep once, and note by how much it was too long.

        The time is random: at regular steps it would coincide with other periodic work.
        """
        before_ns, seconds = self._clock(), LOOK_S * self._random.uniform(0.5, 1.5)
        self._sleep(seconds)
        self._lags_ns.append(max(0, self._clock() - before_ns - round(seconds * 1e9)))
        if next(self._looks) % LOOKS_A_LOCK == 0:
            self._look_at_lock()

    def _look_at_lock(self) -> None:
        """Note how long the lock took; meanwhile this thread may also have waited for a processor."""
        before_ns, then = self._clock(), self._thread_ns()
        self._yield_lock()
        now, took_ns = self._thread_ns(), self._clock() - before_ns
        other_ns = sum(now) - sum(then) if now and then else 0
        self._lock_waits_ns.append(max(0, took_ns - other_ns))

    def take(self) -> dict[str, Any]:
        """The figures since the last take: `cpu_pct` of one core, `loop_ran_ns` and `cpu_wait_ns` where the
        kernel tells, waits for the interpreter lock, what was taken, `lag` as an encoded histogram, pauses.
        """
        now_ns, used_s = self._clock(), self._cpu_s()
        elapsed_s = max(1, now_ns - self._taken_ns) / 1e9
        cpu_pct = round(100 * (used_s - self._used_s) / elapsed_s, 1)
        lag, _ = codec.encoded_ns(self._lags_ns)
        self._lags_ns = []
        self._taken_ns, self._used_s = now_ns, used_s
        own = {"cpu_pct": cpu_pct, **self._take_thread(), **self._take_lock()}
        return {**own, **self._taken(), "lag": lag, **self._pauses.take()}

    def _take_lock(self) -> dict[str, int]:
        waits_ns, self._lock_waits_ns = self._lock_waits_ns, []
        return {"lock_looks": len(waits_ns), "lock_wait_ns": sum(waits_ns)}

    def _take_thread(self) -> dict[str, int]:
        now, last = self._thread_ns(), self._thread_last_ns
        self._thread_last_ns = now
        if now is None or last is None:
            return {}
        return {"loop_ran_ns": now[0] - last[0], "cpu_wait_ns": now[1] - last[1]}


class Shipper:
    """Ships what is complete, ten times a second, and everything when told to."""

    def __init__(self, runner: Runner, recorder: Recorder) -> None:
        self._runner, self._recorder = runner, recorder
        self._health = WorkerHealth()
        self._connections: list[Connections] = []
        """To the endpoint of each cell."""
        self._path_phase, self._path_since_ns = "", 0
        self._looking = RLock()
        self._told: dict[str, tuple[Any, ...]] = {}
        self._second = 0
        self._since_ns = time.perf_counter_ns()
        self.assignments: Sequence[Assignment] = ()
        """The cells of the run under way."""
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
        with self._looking:
            self._connections = [Connections() for _ in self.assignments]
            for connections, assignment in zip(self._connections, self.assignments, strict=True):
                connections.watch(assignment.endpoint.port)
            http2.take()  # what came before
            take_starts()
            self._path_phase, self._path_since_ns = phase, time.perf_counter_ns()

    def end_path(self) -> None:
        """The phase's last request has come back."""
        with self._looking:
            self._send(self._path_of(self._recorder.second(time.perf_counter_ns())))
            self._path_phase = ""

    def _send_second(self, second: int) -> None:
        # In one message, since a thousand workers send it. Others run while many connections are looked at:
        # ending the phase then waits until this second is sent.
        with self._looking:
            path, now_ns = self._path_of(second), time.perf_counter_ns()
            records = self._recorder.take_closed(now_ns)
            if now_ns - self._since_ns >= LEAST_HEALTH_NS:
                records += self._health_of(second, now_ns)
            self._send(records + path)

    def _path_of(self, second: int) -> list[dict[str, Any]]:
        """What the kernel tells of the connections, and as `http2` what our own gRPC knows of them.

        Of cells that run at the same time to one port nobody can tell whose a connection is.
        """
        now_ns = time.perf_counter_ns()
        if not self._path_phase:
            return []
        span_ns, self._path_since_ns = now_ns - self._path_since_ns, now_ns
        ports = Counter(one.endpoint.port for one in self.assignments)
        made = []
        for assignment, connections in zip(self.assignments, self._connections, strict=False):
            if ports[assignment.endpoint.port] > 1 or not (figures := connections.take()):
                continue  # what our own gRPC has counted is in the next record
            if len(self.assignments) == 1 and (known := http2.take()):
                figures["http2"] = known
            if len(self.assignments) == 1 and (starts := take_starts()):
                figures["starts"] = starts
            head = record_head("path", assignment, self._path_phase, second, span_ns)
            made.append({**head, "asked": assignment.connections, **figures})
        return made

    def _health_of(self, second: int, now_ns: int) -> list[dict[str, Any]]:
        """The state of this process, which all its cells share; `cells` says how many, where several do."""
        figures, span_ns = self._health.take(), now_ns - self._since_ns
        self._since_ns = now_ns
        if len(self.assignments) > 1:
            figures["cells"] = len(self.assignments)
        heads = [record_head("health", one, one.phase, second, span_ns) for one in self.assignments]
        return [
            {**head, **figures, "in_flight": one.in_flight, "users": one.users}
            for head, one in zip(heads, self.assignments, strict=True)
        ]

    def _send(self, records: list[dict[str, Any]]) -> None:
        raw, traced = self._recorder.take_raw(), self._recorder.take_traced()
        if records or raw or traced:
            self._runner.send_message(RECORDS, {"records": records, "raw": raw, **traced})

    def _tell_progress(self) -> None:
        for one in self.assignments:
            tally = self._recorder.tally(one.cell, one.phase)
            counts = (one.cell, one.repeat, one.phase, tally.ok, tally.failed)
            if counts != self._told.get(one.cell):
                self._runner.send_message(PROGRESS, dict(zip(PROGRESS_FIELDS, counts, strict=True)))
                self._told[one.cell] = counts


def record_head(kind: str, assignment: Assignment, phase: str, second: int, span_ns: int) -> dict[str, Any]:
    """What every record of a worker's second begins with."""
    about = {"cell": assignment.cell, "repeat": assignment.repeat, "phase": phase}
    return {"kind": kind, **about, "second": second, "span_ns": span_ns}


def ticks_between(workers: int) -> int:
    """Ticks of `SHIP_EVERY_S` from one message of progress to the next, where so many share the load.

    >>> ticks_between(100), ticks_between(1_000)
    (1, 10)
    """
    return max(1, round(workers / SHIP_EVERY_S / PROGRESS_PER_S))
