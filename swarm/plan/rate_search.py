"""The search for the highest rate of arrivals whose latency keeps a bound, and the runs that confirm it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reports.caveat import gravest
from reports.caveats.rate_bound import RateBound
from reports.format import digits, plural, told_digits
from reports.stats.highest_rate import (
    CONFIRMATIONS,
    RateTried,
    asks_again,
    confirmations,
    highest_rate,
    interval_said,
    told,
)
from reports.summary.summary import Summary, tainting
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome, Schedule

START_PER_S = 8.0
PRECISION = 0.10
"""The search ends where the interval of the highest rate reaches no further than that to each side."""
SEARCHING_STEPS, MOST_STEPS = 16, 24
"""Runs of a search, and of a search with those that confirm its rate."""
LEAST_PER_S = 0.1
FAR = 1.9
"""So many times the highest rate met, a miss ends the doubling or the halving: 2, but for the rounding."""
LOWER = 0.95
"""The next rate to confirm is at most that share of one that a confirming run missed."""
DOUBTS = (0.25, 0.2, 0.15, 0.1, 0.05)
"""How likely the rate to confirm is too high, as far as is known: first, and after each run that missed."""
LONGER = 2
"""How many times the requests and the seconds of a run of the search a confirming run has."""


@dataclass(frozen=True)
class RateStep:
    """The next rate to try, and whether that is to confirm it."""

    rate: float
    confirming: bool = False


def next_step(tried: Sequence[RateTried], start_per_s: float) -> RateStep | None:
    """What to try after these runs: doubling, then the median of what is known, then confirming; None to end.

    A run that tells nothing is made once more. It ends where a rate was confirmed, where none can be any
    more, and where even low rates miss the bound or even high ones meet it.
    """
    if not tried:
        return RateStep(start_per_s)
    left, known = MOST_STEPS - len(tried), told(tried)
    if left <= 0:
        return None
    if asks_again(tried):
        return RateStep(tried[-1].rate, tried[-1].confirming)
    if known[-1].confirming:
        return _confirming(known, left)
    return _searching(tried, known, is_over=len(tried) >= SEARCHING_STEPS)


def _searching(tried: Sequence[RateTried], known: Sequence[RateTried], is_over: bool) -> RateStep | None:
    """The next of the search, or the first that is to confirm what it found.

    A miss below a rate that was met ends no doubling. One that is alone above all that was met is made once
    more: a cold server or a stall would else hold the search at a rate far below the highest.
    """
    met = max((run.rate for run in known if run.met), default=0.0)
    missed = min((run.rate for run in known if not run.met and run.rate > met), default=0.0)
    if not met:
        return None if is_over or missed / 2 < LEAST_PER_S else RateStep(rounded(missed / 2))
    if not missed:
        return None if is_over else RateStep(met * 2)
    is_alone = missed >= FAR * met and sum(run.rate == missed for run in tried) == 1
    if is_alone and not is_over:
        return RateStep(missed)
    found = highest_rate(known)
    if is_over or found.half_width <= PRECISION:
        return RateStep(rounded(found.at(DOUBTS[0])), confirming=True)
    return RateStep(rounded(found.median))


def _confirming(known: Sequence[RateTried], left: int) -> RateStep | None:
    """The same rate until it was met often enough in a row, a lower one once it was missed."""
    last, met = known[-1], confirmations(known)
    if met == CONFIRMATIONS or CONFIRMATIONS - met > left:
        return None
    if last.met:
        return RateStep(last.rate, confirming=True)
    misses = sum(run.confirming and not run.met for run in known)
    surer = highest_rate(known).at(DOUBTS[min(misses, len(DOUBTS) - 1)])
    return RateStep(rounded(min(LOWER * last.rate, surer)), confirming=True)


def rounded(rate: float) -> float:
    """To three digits, as people read it."""
    return float(f"{rate:.3g}")


class RateSearch(Schedule):
    """A schedule that searches for the highest rate, one cell's endpoint and batch after the other."""

    _cell: Cell

    def __init__(self, cells: Sequence[Cell], bound: RateBound) -> None:
        self._cells, self._bound = iter(cells), bound
        self._tried: list[RateTried] = []

    def remark(self, outcome: Outcome) -> str:
        """What the search made of a run, for its line on the console."""
        run = outcome.summary
        if run is None:
            return "  tells nothing"
        found = ", ".join(filter(None, (self._bound.measured(run), self._judged(run))))
        return "; ".join(filter(None, (f"  {found}", self._so_far(outcome))))

    def _judged(self, run: Summary) -> str:
        met = self._bound.met_by(run)
        if met is None:
            return ": ".join(filter(None, ("tells nothing", gravest(tainting(run)))))
        return "met" if met else "not met"

    def _so_far(self, outcome: Outcome) -> str:
        """Where the rate lies, once runs have met the bound and missed it; or how far it is confirmed."""
        tried, run = self._with(outcome), outcome.run
        known = told(tried)
        if run.confirming:
            return f"confirming {run.cell.level:g}/s: {confirmations(known)} of {CONFIRMATIONS}"
        if all(one.met for one in known) or not any(one.met for one in known):
            return ""
        found = highest_rate(known)
        median = digits(found.median, told_digits(found.median, *found.interval))
        within = interval_said(found.median, *found.interval)
        return f"searching: {median} ({within})/s after {plural(len(tried), 'run')}"

    def _with(self, outcome: Outcome) -> list[RateTried]:
        """What was tried of this cell, with this run."""
        met = self._bound.met_by(outcome.summary) if outcome.summary else None
        return [*self._tried, RateTried(outcome.run.cell.level, met, outcome.run.confirming)]

    def next(self, outcomes: Sequence[Outcome]) -> Sequence[PlannedRun]:
        """The next rate to try; the level of each cell is where its search starts."""
        # One that failed shows that the server, or the study, cannot go on at any rate.
        for outcome in outcomes:
            if outcome.summary and outcome.summary.status == "done":
                self._tried = self._with(outcome)
                if step := next_step(self._tried, self._cell.level):
                    return [self._run(self._cell, step)]
        cell = next(self._cells, None)
        if cell is None:
            return []
        self._cell, self._tried = cell, []
        return [self._run(cell, RateStep(cell.level))]

    def _run(self, cell: Cell, step: RateStep) -> PlannedRun:
        """A run at a rate, longer where it is to confirm it; the repeat is its number among those at it."""
        times = LONGER if step.confirming else 1
        at_rate = replace(cell, level=step.rate, requests=times * cell.requests, seconds=times * cell.seconds)
        repeat = 1 + sum(run.rate == step.rate for run in self._tried)
        return PlannedRun(at_rate, repeat, confirming=step.confirming)
