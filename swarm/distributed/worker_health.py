"""How the generator itself fares: processor, lag of the event loop, garbage collection. A record a second."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gevent

from reports.histogram import codec

LOOK_S = 0.02
"""How long the lag probe sleeps on average; what it oversleeps is the lag, up to 1 ms of it the timer's."""


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
    long the thread of the event loop has run, and was ready to run and had no processor.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], None] = gevent.sleep,
        cpu_s: Callable[[], float] = time.process_time,
        thread_ns: Callable[[], tuple[int, int] | None] = loop_thread_ns,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._cpu_s, self._thread_ns = cpu_s, thread_ns
        self._thread_last_ns = thread_ns()
        self._random = random.Random()
        self._lags_ns: list[int] = []
        self._pauses = GcPauses(clock)
        self._taken_ns, self._used_s = clock(), self._cpu_s()
        gc.callbacks.append(self._pauses)

    def watch(self) -> None:
        """Sleep and look, for ever."""
        while True:
            self.look()

    def look(self) -> None:
        """Sleep once, and note by how much it was too long.

        For a time of chance: at even steps it would fall in with whatever else comes at even steps.
        """
        before_ns, seconds = self._clock(), LOOK_S * self._random.uniform(0.5, 1.5)
        self._sleep(seconds)
        self._lags_ns.append(max(0, self._clock() - before_ns - round(seconds * 1e9)))

    def take(self) -> dict[str, Any]:
        """The figures since the last take: `cpu_pct` of one core, `loop_ran_ns` and `cpu_wait_ns` where the
        kernel tells, `lag` as an encoded histogram, pauses.
        """
        now_ns, used_s = self._clock(), self._cpu_s()
        elapsed_s = max(1, now_ns - self._taken_ns) / 1e9
        cpu_pct = round(100 * (used_s - self._used_s) / elapsed_s, 1)
        lag, _ = codec.encoded_ns(self._lags_ns)
        self._lags_ns = []
        self._taken_ns, self._used_s = now_ns, used_s
        return {"cpu_pct": cpu_pct, **self._take_thread(), "lag": lag, **self._pauses.take()}

    def _take_thread(self) -> dict[str, int]:
        now, last = self._thread_ns(), self._thread_last_ns
        self._thread_last_ns = now
        if now is None or last is None:
            return {}
        return {"loop_ran_ns": now[0] - last[0], "cpu_wait_ns": now[1] - last[1]}

    def end(self) -> None:
        """Leave the garbage collector alone again."""
        gc.callbacks.remove(self._pauses)
