"""The median of some repeats with their lowest and highest, and the ratio of two such."""

from dataclasses import dataclass
from statistics import median

from reports.format import digits
from reports.stats.repeats import COMPARABLE_RUNS, ENOUGH_RUNS, Runs, Value


@dataclass(frozen=True)
class Spread:
    """What some repeats came to; with one run all three are the same."""

    median: float
    low: float
    high: float
    runs: int = 1

    def __str__(self) -> str:
        around = "" if self.runs == 1 else f" ({digits(self.low)}–{digits(self.high)})"
        return f"{digits(self.median)}{around}"

    @property
    def times(self) -> str:
        """As a ratio: 0.176× (0.166–0.187)."""
        around = "" if self.low == self.high else f" ({digits(self.low)}–{digits(self.high)})"
        return f"{digits(self.median)}×{around}"


def spread_of(runs: Runs, value: Value) -> Spread | None:
    """The spread of a value over the runs that have it; None where none has."""
    found = [known for run in runs if (known := value(run)) is not None]
    return Spread(median(found), min(found), max(found), len(found)) if found else None


def over(top: Spread, bottom: Spread) -> Spread | None:
    """The ratio of two medians, with the least and the most that their repeats allow; None over 0."""
    if bottom.low <= 0:
        return None
    ends = (top.low / bottom.high, top.high / bottom.low)
    return Spread(top.median / bottom.median, *ends, min(top.runs, bottom.runs))


def hedge(fewest: int) -> str:
    """What so few runs of each side leave open; empty where they suffice."""
    if fewest < COMPARABLE_RUNS:
        return "one run is behind a figure, so this may be chance; --repeats 5 would tell"
    if fewest < ENOUGH_RUNS:
        return f"with fewer than {ENOUGH_RUNS} runs per cell, small differences may be chance"
    return ""
