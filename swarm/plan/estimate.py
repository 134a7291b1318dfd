"""How long the runs of a plan take, before any of them: what each warms up and measures."""

from collections.abc import Sequence

from reports.format import duration, plural
from swarm.plan.cell import Cell, PlannedRun

FINE_S, COARSE_S = 10, 30
"""To what an estimate is rounded, in seconds; the latter from two minutes on."""


def seconds_of(cell: Cell) -> float:
    """The least time that a cell measures, in seconds; a rate needs time for its requests, too."""
    return max(cell.seconds, cell.requests / cell.level) if cell.open else cell.seconds


def estimate_s(runs: Sequence[PlannedRun], warm_up_s: float) -> float:
    """Seconds in all; `warm_up_s` is the longest warm-up."""
    return sum(warm_up_s + seconds_of(run.cell) for run in runs)


def in_words(runs: Sequence[PlannedRun], warm_up_s: float) -> str:
    """`20 runs, about 4 min`; a search has no plan."""
    if not runs:
        return "as many runs as the search needs"
    about_s = estimate_s(runs, warm_up_s)
    step_s = FINE_S if about_s < 120 else COARSE_S
    return f"{plural(len(runs), 'run')}, about {duration(max(step_s, step_s * round(about_s / step_s)))}"
