"""Good requests: those that succeeded within the limits of --slo, of all that were due."""

from dataclasses import dataclass
from math import floor

from reports.caveat import Trait, coded
from reports.fold.records import ratio
from reports.fold.windows import Arrivals, Results
from reports.slo import Slo

COUNTED = coded(Trait.IS_BOUNDED) | {"dropped-arrivals"}
"""Codes of what invalidates a run for other figures: failures and dropped arrivals are requests not good."""


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """Of one run: `good` requests of those that were `due`, `per_s` over the measure phase; None if unknown.

    Due are requests that came back, right or wrong, and arrivals that were never sent. `objective` is the
    share that must be good, None without --slo.
    """

    slo: str = ""
    objective: float | None = None
    good: int | None = None
    due: int | None = None
    per_s: float | None = None

    @property
    def share(self) -> float | None:
        """Good requests of those that were due; None where none was."""
        return ratio(self.good, self.due)

    @property
    def is_met(self) -> bool | None:
        """Whether the share reaches the objective; None where either is unknown."""
        if self.objective is None or self.good is None or not self.due:
            return None
        return self.good >= self.objective * self.due - 1e-9


def goodput_of(slo: str, load: str, found: Results, sent: Arrivals, measured_ns: float | None) -> Goodput:
    """From what came back in a measure phase of so many nanoseconds, and what was sent."""
    if not slo:
        return Goodput()
    dropped = 0 if load == "closed" else sent.dropped
    due = None if dropped is None else found.finished + dropped
    objective = Slo.parse(slo).share
    good = found.good if found.finished else 0
    if good is None or not due:
        return Goodput(slo=slo, objective=objective)
    per_s = good / (measured_ns / 1e9) if measured_ns else None
    return Goodput(slo=slo, objective=objective, good=good, due=due, per_s=per_s)


def share_said(share: float) -> str:
    """99.7 %: never rounded up, so that no share reads as an objective that it misses."""
    shown = floor(share * 1e4 + 1e-6) / 1e2
    return f"{shown:.4g} %"
