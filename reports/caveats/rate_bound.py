"""The bound that a search for the highest rate keeps: one judge for the search and for its report."""

import re
from dataclasses import dataclass
from typing import Self

from reports.caveat import Trait, coded
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.summary.summary import LatencyAt, Summary, tainting

MOST_MS = 3_600_000.0
"""That a histogram of latencies can tell."""


@dataclass(frozen=True)
class RateBound:
    """At most `limit_ms` at a percentile, `p50` to `p99.9`, of latency, counted from the intended start."""

    percentile: str
    limit_ms: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """`p99<=100`: the 99th percentile is at most 100 ms. Raises ValueError."""
        found = re.fullmatch(r"(p50|p90|p95|p99|p99\.9)\s*<=\s*(\d+(?:\.\d+)?)\s*(?:ms)?", text.strip())
        if not found or not 0 < float(found[2]) <= MOST_MS:
            raise ValueError("give p50, p90, p95, p99 or p99.9 and ms, e.g. 'p99<=100'")
        return cls(found[1], float(found[2]))

    def __str__(self) -> str:
        return f"{self.percentile} ≤ {self.limit_ms:g} ms"

    @property
    def results(self) -> int:
        """How many results the percentile needs to be trusted."""
        return ENOUGH[self.percentile]

    @property
    def least(self) -> int:
        """How many results there is no percentile below."""
        return LEAST_RESULTS[self.percentile]

    def exceeded_by(self, run: Summary) -> bool:
        """Whether the latency of a run is known and above the limit."""
        found_ms = LatencyAt(self.percentile)(run)
        return found_ms is not None and found_ms > self.limit_ms

    def met_by(self, run: Summary) -> bool | None:
        """Whether the server met it in a run; None where the run is no evidence about the server.

        It did not where latency exceeds it, some requests failed, or arrivals were dropped.
        """
        codes = tainting(run)
        if codes & coded(Trait.VOIDS):
            return None
        if self.exceeded_by(run):
            return False
        if codes & coded(Trait.OF_CLIENT):
            return None
        if run.counts.failures or run.sent.dropped:
            return False
        return None if codes or LatencyAt(self.percentile)(run) is None else True
