"""The search for the highest rate of arrivals whose latency keeps a bound: doubling, then bisection."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from reports.caveat import gravest
from reports.caveats.rate_bound import RateBound
from reports.summary.summary import Summary, percentile_ms, tainting
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome, Schedule

START_PER_S = 8.0
PRECISION = 1.05
"""Done when the lowest rate that misses the bound is at most this multiple of the highest that meets it."""
MOST_STEPS = 16
LEAST_PER_S = 0.1

Rates = Generator[float, bool | None, None]


def rates(start_per_s: float) -> Rates:
    """The rates to try, to three digits, each told whether it met the bound.

    None, for a run that tells nothing, has it tried once more, since what spoiled one run is often over in
    the next. A rate that tells nothing twice is no answer, and lower ones may still be.
    """
    met, beyond = 0.0, math.inf
    rate, asked_again = start_per_s, False
    for _ in range(MOST_STEPS):
        verdict = yield rate
        asked_again = verdict is None and not asked_again
        if asked_again:
            continue
        if verdict:
            met = max(met, rate)
        else:
            beyond = min(beyond, rate)
        if beyond <= met * PRECISION or beyond / 2 < LEAST_PER_S:
            return
        rate = met * 2 if math.isinf(beyond) else math.sqrt(met * beyond) if met else beyond / 2
        rate = float(f"{rate:.3g}")


class RateSearch(Schedule):
    """A schedule that searches for the highest rate, one cell's endpoint and batch after the other."""

    def __init__(self, cells: Sequence[Cell], bound: RateBound) -> None:
        self._cells, self._bound = iter(cells), bound
        self._rates: Rates | None = None

    def remark(self, outcome: Outcome) -> str:
        """What the search made of a run, for its line on the console."""
        run = outcome.summary
        if run is None:
            return "  tells nothing"
        value_ms = percentile_ms(run, self._bound.percentile)
        found = "" if value_ms is None else f"{self._bound.percentile} {value_ms:.1f} ms, "
        return f"  {found}{self._judged(run)}"

    def _judged(self, run: Summary) -> str:
        met = self._bound.met_by(run)
        if met is None:
            return ": ".join(filter(None, ("tells nothing", gravest(tainting(run)))))
        return "met" if met else "not met"

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next rate to try; the level of each cell is where its search starts."""
        run = outcome.summary if outcome else None
        # One that failed shows that the server, or the study, cannot go on at any rate.
        if outcome and run and run.status == "done" and self._rates:
            try:
                rate, last = self._rates.send(self._bound.met_by(run)), outcome.run
                repeat = last.repeat + 1 if rate == last.cell.level else 1
                return PlannedRun(replace(last.cell, level=rate), repeat)
            except StopIteration:
                pass
        cell = next(self._cells, None)
        if cell is None:
            return None
        self._rates = rates(cell.level)
        return PlannedRun(replace(cell, level=next(self._rates)), 1)
