"""Percentiles that the data have: how many results each takes, and those of a distribution that are told."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from reports.histogram.buckets import Buckets, mean_ns, percentiles_ns

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
BEYOND, LEAST = 5, 20
"""Results beyond a percentile that is told, and in all. With 5 beyond it "p99" lies between the true p97.7
and p99.7 if all are independent; with fewer a single result decides the figure.
"""
BEYOND_ENOUGH, BEYOND_GATED = 10, 50
"""Results beyond one that is told without a caveat, and one that is gated on."""


def least_results(percent: float, beyond: int = BEYOND) -> int:
    """How many results a percentile takes to have so many beyond it; to be told: 100 for p95, 500 for p99."""
    return max(LEAST, ceil(round(100 * beyond / (100 - percent), 6)))


LEAST_RESULTS = {f"p{percent:g}": least_results(percent) for percent in PERCENTS}
"""To be told, by name: 20, 50, 100, 500 and 5,000."""
ENOUGH = {f"p{percent:g}": least_results(percent, BEYOND_ENOUGH) for percent in PERCENTS}
"""To be told without a caveat."""


def told_percentiles_ns(values: Buckets, percents: Sequence[float]) -> list[float | None]:
    """Percentiles of a histogram, None for each that it has too few results for."""
    results = values.total
    found = zip(percents, percentiles_ns(values, percents), strict=True)
    return [value_ns if results >= least_results(percent) else None for percent, value_ns in found]


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Mean, percentiles and maximum of some durations; None without any, and where they are too few.

    `few_p95_ns` is the p95 of fewer results than it takes: checks of the load generator read it by
    `any_p95_ns`, since a generator that is too slow must be found in few results, too. It is shown nowhere.
    """

    mean_ns: float | None = None
    p50_ns: float | None = None
    p90_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    max_ns: float | None = None
    few_p95_ns: float | None = None

    @classmethod
    def of(cls, values: Buckets) -> Self:
        """Of the values of a histogram."""
        p50, p90, p95, p99, p999 = told_percentiles_ns(values, PERCENTS)
        any_p95, most = percentiles_ns(values, (95.0, 100.0))
        few = any_p95 if p95 is None else None
        told = {"p50_ns": p50, "p90_ns": p90, "p95_ns": p95, "p99_ns": p99, "p999_ns": p999}
        return cls(mean_ns=mean_ns(values), max_ns=most, few_p95_ns=few, **told)

    @property
    def any_p95_ns(self) -> float | None:
        """The p95, however few results it is of; None without any."""
        return self.few_p95_ns if self.p95_ns is None else self.p95_ns
