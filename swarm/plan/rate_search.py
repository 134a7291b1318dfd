"""The search for the highest rate of arrivals whose latency keeps a bound: doubling, then bisection."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from reports.histogram import buckets
from swarm.errors import UsageError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome, Schedule

START_PER_S = 8.0
PRECISION = 1.05
"""Done when the lowest rate that misses the bound is at most this many times the highest that meets it."""
MOST_STEPS = 16
LEAST_PER_S = 0.1
MOST_MS = 3_600_000.0
"""That a histogram of latencies can tell."""
BEYOND = 10
"""As many results must lie beyond a percentile that is to be trusted."""

Rates = Generator[float, bool | None, None]


@dataclass(frozen=True)
class RateBound:
    """At most `limit_ms` at a percentile (50 to 99.9) of latency, counted from the intended start."""

    percentile: float
    limit_ms: float

    @classmethod
    def parse(cls, text: str) -> RateBound:
        """`p99<=100`: the 99th percentile is at most 100 ms. Raises UsageError."""
        found = re.fullmatch(r"p(50|90|95|99|99\.9)\s*<=\s*(\d+(?:\.\d+)?)\s*(?:ms)?", text.strip())
        if not found or not 0 < float(found[2]) <= MOST_MS:
            raise UsageError(f"--find-rate {text}: give p50, p90, p95, p99 or p99.9 and ms, e.g. 'p99<=100'")
        return cls(float(found[1]), float(found[2]))

    @property
    def results(self) -> int:
        """How many results the percentile needs."""
        return math.ceil(BEYOND / (1 - self.percentile / 100) - 1e-6)

    def met_by(self, outcome: Outcome) -> bool | None:
        """Whether a run kept it without failures and dropped arrivals; None where the run tells nothing."""
        if not outcome.sound or not outcome.finished:
            return None
        value_ns = self.value_ns(outcome)
        whole = not outcome.failed and not outcome.dropped
        return whole and value_ns is not None and value_ns <= self.limit_ms * 1e6

    def value_ns(self, outcome: Outcome) -> float | None:
        """The percentile of a run; None where nothing succeeded."""
        (value_ns,) = buckets.percentiles_ns(outcome.latency, [self.percentile])
        return value_ns


def rates(start_per_s: float) -> Rates:
    """The rates to try, to three digits, each told whether it met the bound; None, a dead server, ends it."""
    met, missed = 0.0, math.inf
    rate = start_per_s
    for _ in range(MOST_STEPS):
        verdict = yield rate
        if verdict is None:
            return
        if verdict:
            met = max(met, rate)
        else:
            missed = min(missed, rate)
        if missed <= met * PRECISION or missed / 2 < LEAST_PER_S:
            return
        rate = met * 2 if math.isinf(missed) else math.sqrt(met * missed) if met else missed / 2
        rate = float(f"{rate:.3g}")


class RateSearch(Schedule):
    """A schedule that searches for the highest rate, one cell's endpoint and batch after the other."""

    def __init__(self, cells: Sequence[Cell], bound: RateBound) -> None:
        self._cells = iter(cells)
        self._bound = bound
        self._cell: Cell | None = None
        self._rates: Rates | None = None

    def remark(self, outcome: Outcome) -> str:
        """What the search made of a run, for its line on the console."""
        value_ns, verdict = self._bound.value_ns(outcome), self._bound.met_by(outcome)
        words = {True: "met", False: "not met", None: "tells nothing"}[verdict]
        found = "" if value_ns is None else f"p{self._bound.percentile:g} {value_ns / 1e6:.1f} ms, "
        return f"   {found}{words}"

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next rate to try; the level of each cell is where its search starts."""
        if self._rates is not None and self._cell is not None and outcome is not None:
            try:
                rate = self._rates.send(self._bound.met_by(outcome))
                return PlannedRun(replace(self._cell, level=rate), 1)
            except StopIteration:
                pass
        self._cell = next(self._cells, None)
        if self._cell is None:
            return None
        self._rates = rates(self._cell.level)
        return PlannedRun(replace(self._cell, level=next(self._rates)), 1)
