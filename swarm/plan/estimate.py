"""How long the runs of a plan take, before any of them: what each warms up and measures."""

from collections.abc import Sequence

from reports.format import duration, plural
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import costs_of, once_a_group, warm_ups

LONG_S = 3_600
FINE_S, COARSE_S = 10, 30
"""To what an estimate is rounded, in seconds; the latter from two minutes on."""


def seconds_of(cell: Cell) -> float:
    """The least time that a cell measures, in seconds; a rate needs time for its requests, too."""
    return max(cell.seconds, cell.requests / cell.level) if cell.open else cell.seconds


def estimate_s(runs: Sequence[PlannedRun], warm_up_s: float) -> float:
    """Seconds in all; `warm_up_s` is the longest warm-up."""
    plan = [run.to_record() for run in runs]
    warming = sum(once_a_group(plan, map(int, warm_ups(plan))))
    return warming * warm_up_s + sum(once_a_group(plan, [seconds_of(run.cell) for run in runs]))


def in_words(runs: Sequence[PlannedRun], warm_up_s: float, pace_s: float | None = None) -> str:
    """`20 runs, about 4 min`; a search has no plan.

    Closed-loop cells wait for each reply, so that without the `pace_s` of an earlier study, in seconds for
    each unit of `costs_of`, this is the least that they take.
    """
    if not runs:
        return "as many runs as the search needs"
    known = pace_s is not None or all(run.cell.open for run in runs)
    paced_s = (pace_s or 0.0) * sum(costs_of([run.to_record() for run in runs]))
    total_s = max(estimate_s(runs, warm_up_s), paced_s)
    step_s = FINE_S if total_s < 120 else COARSE_S
    told = duration(max(step_s, step_s * round(total_s / step_s)))
    return f"{plural(len(runs), 'run')}, {'about' if known else 'at least'} {told}"


def shorten(runs: Sequence[PlannedRun], warm_up_s: float) -> str:
    """What makes a study shorter that takes more than LONG_S; empty for another."""
    if estimate_s(runs, warm_up_s) <= LONG_S:
        return ""
    faster = " --replay-speed or a part of the trace," if any(run.cell.trace for run in runs) else ""
    return f"This is a long study; to shorten it give{faster} fewer --repeats, or --cells."
