"""One line a run, with the time left where that can be said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reports.histogram import codec
from swarm.plan.cell import PlannedRun
from swarm.plan.schedule import Outcome

FIXED = 60
"""A run's fixed cost (spawning, warm-up, least seconds), in images; only the estimate rests on it."""


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
        done, to_do = self._planned[: self._done], self._planned[self._done :]
        left_s = (self._clock() - self._began) * sum(map(cost, to_do)) / max(1, sum(map(cost, done)))
        return line(self._done, len(self._planned), outcome, left_s)


def cost(run: PlannedRun) -> int:
    """How long a run takes, in arbitrary units."""
    return cost_of(run.cell.weight)


def cost_of(images: int) -> int:
    """The same of a run that sends so many images."""
    return FIXED + images


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
    (p50_ns,) = codec.percentiles_ns(outcome.latency, [50.0])
    p50 = f"p50 {p50_ns / 1e6:7.1f} ms" if p50_ns is not None else "no figures    "
    failures = f"   {outcome.failed} FAILED" if outcome.failed else ""
    dropped = f"   {outcome.dropped} DROPPED" if outcome.dropped else ""
    left = f"   about {clock(left_s)} left" if number < total else ""
    sent = outcome.finished
    return f"[{count}] {outcome.run.cell.name:<24} {sent:5d} requests   {p50}{failures}{dropped}{left}"
