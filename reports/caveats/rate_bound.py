"""The bound that a search for the highest rate keeps: one judge for the search and for its report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from reports.caveat import Trait, coded
from reports.fold.records import ratio
from reports.format import milliseconds
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.slo import LatencyBound, Slo
from reports.summary.goodput import COUNTED, share_said
from reports.summary.summary import LatencyAt, Summary, tainting

BY_SLO = "slo"
"""What --find-rate says where the objective of --slo is the bound."""


@dataclass(frozen=True)
class RateBound(LatencyBound):
    """A bound on the latency of a run in which no request fails and no arrival is dropped."""

    @property
    def allows(self) -> str:
        """What a run that met it may have had, for a sentence that begins with: at this rate."""
        return "nothing failed, was dropped or was invalidated"

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
        if self.unserved(run):
            return False
        return None if codes - self.judged or not self.known(run) else True

    @property
    def judged(self) -> frozenset[str]:
        """Codes of what invalidates a run for others, and is judged here."""
        return frozenset()

    def unserved(self, run: Summary) -> bool:
        """Whether too many requests failed or were dropped."""
        return bool(run.counts.failures or run.sent.dropped)

    def known(self, run: Summary) -> bool:
        """Whether a run tells of it."""
        return LatencyAt(self.percentile)(run) is not None

    def measured(self, run: Summary) -> str:
        """What a run had of it: `p99 93.1 ms`; empty where that is not known."""
        value_ms = LatencyAt(self.percentile)(run)
        return "" if value_ms is None else f"{self.percentile} {value_ms:.1f} ms"

    def worst(self, runs: Sequence[Summary]) -> str:
        """What some runs that exceeded it had at the worst, in short."""
        return milliseconds(max(LatencyAt(self.percentile)(run) or 0.0 for run in runs))


@dataclass(frozen=True)
class GoodputBound(RateBound):
    """The objective of --slo: failures and dropped arrivals count as requests that are not good."""

    slo: Slo

    @classmethod
    def of(cls, slo: Slo) -> Self:
        """The percentile and limit are those of all requests."""
        return cls(slo.whole.percentile, slo.whole.limit_ms, slo)

    def __str__(self) -> str:
        return f"the goodput objective {self.slo}"

    @property
    def allows(self) -> str:
        """Failures and dropped arrivals."""
        return "requests that failed or were dropped count as not good, and nothing was invalidated"

    def exceeded_by(self, run: Summary) -> bool:
        """Whether too many successes came late, whatever failed or was dropped."""
        late = ratio(run.succeeded - (run.goodput.good or 0), run.goodput.due)
        return self.known(run) and late is not None and late > 1 - self.slo.share

    @property
    def judged(self) -> frozenset[str]:
        """Failures and dropped arrivals are in the share."""
        return COUNTED

    def unserved(self, run: Summary) -> bool:
        """Whether the share of good requests is too low."""
        return run.goodput.is_met is False

    def known(self, run: Summary) -> bool:
        """Whether a run tells of it, in as many requests as its percentile takes."""
        return run.goodput.share is not None and (run.goodput.due or 0) >= self.least

    def measured(self, run: Summary) -> str:
        """What a run had of it: `99.7 % good`."""
        return "" if run.goodput.share is None else f"{share_said(run.goodput.share)} good"

    def worst(self, runs: Sequence[Summary]) -> str:
        """What some runs that missed it had at the worst, in short."""
        return f"{share_said(min(run.goodput.share or 0.0 for run in runs))} good"


def rate_bound(find_rate: str, slo: str = "") -> RateBound:
    """What --find-rate and --slo ask a search to keep. Raises ValueError with a sentence on what to give."""
    if find_rate.strip() != BY_SLO:
        return RateBound.parse(find_rate)
    if not slo:
        raise ValueError("slo needs the objective; give --slo, e.g. 'p99<=100', too")
    return GoodputBound.of(Slo.parse(slo))


def check_find_rate(text: str) -> None:
    """ValueError where it is no bound, and not the word for that of --slo."""
    if text.strip() != BY_SLO:
        RateBound.parse(text)
