"""One line a run, with the time left."""

from __future__ import annotations

from swarm.plan import Run

OVERHEAD = 60
"""A run's fixed cost (spawning, warm-up, least seconds), in images; only the estimate rests on it."""


def cost(run: Run) -> int:
    """How long a run takes, in arbitrary units."""
    return OVERHEAD + run.cell.weight


def time_left_s(done: list[Run], to_do: list[Run], elapsed_s: float) -> float:
    """Seconds left if the rest goes at the pace so far."""
    return elapsed_s * sum(map(cost, to_do)) / max(1, sum(map(cost, done)))


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


def line(
    number: int, total: int, run: Run, requests: int, failed: int, p50_ns: float | None, left_s: float
) -> str:
    """`[ 3/20] onnx-grpc/b4/c1         10 requests   p50 211 ms   about 2 min 10 s left`."""
    width = len(str(total))
    p50 = f"p50 {p50_ns / 1e6:7.1f} ms" if p50_ns is not None else "no answer     "
    failures = f"   {failed} FAILED" if failed else ""
    left = f"   about {clock(left_s)} left" if number < total else ""
    return f"[{number:{width}}/{total}] {run.cell.name:<24} {requests:5d} requests   {p50}{failures}{left}"
