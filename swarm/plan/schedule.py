"""Which run comes next: of a list that may grow, or of a search that learns; and the time left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reports.summary.summary import Summary
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import one_repeat, order

FIXED = 60
"""A run's fixed cost (spawning, warm-up, least seconds), in images; only the estimate rests on it."""


class Schedule(ABC):
    """Which run comes next; it may depend on what came of the last one."""

    planned: Sequence[PlannedRun] = ()
    """The runs that are certain to come, for the header and for the time left; empty where none is.

    They may become more, at the end.
    """

    @abstractmethod
    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next run after the last one's outcome, or None at the end."""

    def remark(self, outcome: Outcome) -> str:
        """What a run's line on the console is to add: nothing."""
        return ""


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its Summary, as its report will have it, or None where that cannot be told."""

    run: PlannedRun
    summary: Summary | None


class RepeatingSchedule(Schedule):
    """`repeats` of some cells, then more, one by one, up to `most` of them: none, where there are as many.

    `is_wanted` is asked at the end of a repeat whether there is to be another one; it is told that one's
    number, and how many there may be from it on.
    """

    def __init__(
        self, cells: list[Cell], repeats: int, most: int, seed: int, is_wanted: Callable[[int, int], bool]
    ) -> None:
        self._cells, self._repeats, self._most, self._seed = cells, repeats, most, seed
        self._is_wanted = is_wanted
        self._begun = 0
        self.planned: list[PlannedRun] = order(cells, repeats, seed)

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next of the repeat, or of one more."""
        if self._begun == len(self.planned):
            self._repeat()
        if self._begun == len(self.planned):
            return None
        self._begun += 1
        return self.planned[self._begun - 1]

    def _repeat(self) -> None:
        number = self._repeats + 1
        if number <= self._most and self._is_wanted(number, self._most - self._repeats):
            self._repeats = number
            self.planned += one_repeat(self._cells, number, self._seed)


class Pace:
    """How fast a study goes; `planned` may grow, and is empty where nobody knows how many runs come."""

    def __init__(self, planned: Sequence[PlannedRun], clock: Callable[[], float]) -> None:
        self._planned, self._clock = planned, clock
        self._began = clock()
        self._done = 0

    def announcement(self, run: PlannedRun) -> str:
        """What a run of a search is about to do: its many requests at a low rate take minutes."""
        cell = run.cell
        return f"trying {cell.name}: {clock(max(cell.seconds, cell.requests / cell.level))} after its warm-up"

    def line(self, outcome: Outcome) -> str:
        """What one more run came to, and the time left if the rest goes at the pace so far."""
        self._done += 1
        costs = [cost_of(run.cell.batch, run.cell.requests) for run in self._planned]
        done, to_do = sum(costs[: self._done]), sum(costs[self._done :])
        left_s = (self._clock() - self._began) * to_do / max(1, done)
        return line(self._done, len(self._planned), outcome, left_s)


def cost_of(batch: int, requests: int) -> int:
    """How long a run takes that sends so many requests, in arbitrary units: it grows with their images."""
    return FIXED + batch * requests


def clock(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`.

    >>> clock(185)
    '3 min 05 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def line(number: int, total: int, outcome: Outcome, left_s: float) -> str:
    """`[ 3/20] onnx-grpc/b4/c1         10 requests   p50 211 ms   about 2 min 10 s left`."""
    width = len(str(total))
    count = f"{number:{width}}/{total}" if total else f"{number:3}"
    found, name = outcome.summary, outcome.run.cell.name
    p50_ns = found.latency.p50_ns if found else None
    p50 = f"p50 {p50_ns / 1e6:7.1f} ms" if p50_ns is not None else "no figures    "
    failures = f"   {found.counts.failures} FAILED" if found and found.counts.failures else ""
    dropped = f"   {found.sent.dropped} DROPPED" if found and found.sent.dropped else ""
    requests = found.counts.requests if found else None
    left = f"   about {clock(left_s)} left" if number < total else ""
    return f"[{count}] {name:<24} {requests or 0:5d} requests   {p50}{failures}{dropped}{left}"
