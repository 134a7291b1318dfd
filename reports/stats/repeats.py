"""What the repeats of a cell say together, and which of them can be rested on."""

from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import median

from reports.study.study import Study
from reports.summary.summary import Summary

Value = Callable[[Summary], float | None]
Runs = Sequence[Summary]
COMPARABLE_RUNS, ENOUGH_RUNS = 2, 3


def repeats(study: Study) -> str:
    """How many runs are behind each number, in a sentence."""
    most = max((run.repeat for run in study.started), default=1)
    return (
        "One run per cell."
        if most == 1
        else f"Median of up to {most} repeats; disqualified ones count only where there is no other."
    )


def typical(runs: Runs, value: Value) -> float | None:
    """The median over the repeats it rests on; None where there are none."""
    known = [found for run in resting_on(runs, value) if (found := value(run)) is not None]
    return median(known) if known else None


def resting_on(runs: Runs, value: Value) -> Runs:
    """The repeats that have the value and no disqualifying caveat, or all that have it where each has one."""
    known = [run for run in runs if value(run) is not None]
    return [run for run in known if not run.tainted] or known


def scarcity(counts: Collection[int]) -> str:
    """What a comparison cannot tell when it rests on so many runs of each cell; empty where they suffice."""
    if max(counts) < COMPARABLE_RUNS:
        return "inconclusive: one run per cell; --repeats 5 would tell"
    if min(counts) < COMPARABLE_RUNS:
        return "inconclusive where a cell has one run; --repeats 5 would tell"
    few = min(counts) < ENOUGH_RUNS
    return f"with fewer than {ENOUGH_RUNS} runs per cell, small differences may be chance" if few else ""


def taints(runs: Runs) -> Iterator[str]:
    """The advice of each caveat that disqualifies one of the runs."""
    return (f"{doubt.code}: {doubt.advice}" for run in runs for doubt in run.caveats if doubt.tainted)


def absence(runs: Runs) -> str:
    """Why there is no number."""
    if not runs:
        return "not in this study's plan"
    if not any(run.started for run in runs):
        return "not run"
    if any(run.succeeded for run in runs):
        return "not stated by the server"
    ends = {run.status for run in runs if run.started} - {"done"}
    return f"no request succeeded ({', '.join(sorted(ends))})" if ends else "no request succeeded"
