"""How latencies are distributed: a percentile curve and a histogram of each endpoint, by batch and load.

Both are of the ledger's own HDR histograms, those of a cell's repeats added up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from reports.format import NS_PER_MS
from reports.histogram.buckets import Buckets, middles_ns
from reports.histogram.percentiles import BEYOND, LEAST, told_percentiles_ns
from reports.page.page import Chart
from reports.page.question import Question
from reports.stats.conditions import Condition, condition
from reports.stats.repeats import by_cell, resting_on
from reports.study.study import Study

DECADES = 6
PERCENTS = tuple(
    round(100 - tenths * 10.0 ** (1 - decade), decade)
    for decade in range(DECADES)
    for tenths in range(10, 1, -1)
)
"""0, 10, … 80, 90, 91, … 98, 99, 99.1, …: nine in each decade of what lies beyond."""
FEWEST_BINS, MOST_BINS = 24, 48
MARGIN, LEAST_MS = 1.05, 0.001
"""What an axis has beside its values, and the ledger's finest."""
WIDE = 10
"""Times the least latency, from which on an axis is logarithmic."""
OF = "Latency counts from the intended start and covers successes; repeats are added up."
CURVE = (
    f"How much latency a share of the requests stays within. {OF} A line ends where fewer than {BEYOND} "
    "results lie beyond it."
)
SHAPE = f"What share of an endpoint's requests took how long; one scale for all endpoints. {OF}"
DOUBTED = "(invalidated): every run behind the line is invalidated; the caveats say why."


@dataclass(frozen=True)
class Latencies:
    """One cell's, of the repeats that it rests on; `doubted` where a caveat invalidates each of them."""

    name: str
    values: Buckets
    doubted: bool

    @property
    def label(self) -> dict[str, Any]:
        """What a drawing says of it: its name, and how many requests succeeded."""
        return {"name": self.name, "requests": self.values.total, "doubted": self.doubted}


Floats = npt.NDArray[np.float64]
Groups = Mapping[Condition, Sequence[Latencies]]


def distributions(study: Study) -> Groups:
    """Those of each cell with enough results, endpoints in the study's order; floors are left out."""
    known = [run for run in study.started if run.succeeded and not run.is_floor]
    found: dict[Condition, list[Latencies]] = {}
    for runs in by_cell(study.ordered(known)).values():
        counted = resting_on(runs, lambda run: run.latency.mean_ns)
        values = study.seconds_of(counted).whole("latency")
        if values.total >= LEAST:
            doubted = all(run.tainted for run in counted)
            one = Latencies(study.named(runs[0].way), values, doubted)
            found.setdefault(condition(runs[0]), []).append(one)
    return dict(sorted(found.items()))


def charts(study: Study) -> Iterator[Chart]:
    """The two charts; none where no cell has enough results."""
    groups = distributions(study)
    if not groups:
        return
    notes = (DOUBTED,) if any(one.doubted for group in groups.values() for one in group) else ()
    curve = {
        "percents": PERCENTS,
        "groups": [named(key, percentile_lines(group)) for key, group in groups.items()],
    }
    yield Chart("Latency by percentile", CURVE, "percentiles", curve, notes, folded=True)
    shape = {"groups": [named(key, histogram(group)) for key, group in groups.items()]}
    yield Chart("Latency histogram", SHAPE, "distribution", shape, notes, folded=True)


def named(key: Condition, group: dict[str, Any]) -> dict[str, Any]:
    """What is drawn of a batch and load, under its title."""
    return {"title": str(key), **group}


def percentile_lines(group: Sequence[Latencies]) -> dict[str, Any]:
    """Each cell's latency in ms at the first of PERCENTS: those that enough results lie beyond."""
    return {"lines": [one.label | {"ms": percentiles_ms(one.values)} for one in group]}


def percentiles_ms(values: Buckets) -> list[float]:
    """To the ledger's own precision."""
    found = told_percentiles_ns(values, PERCENTS)
    return [round(ns / NS_PER_MS, 4) for ns in found if ns is not None]


def histogram(group: Sequence[Latencies]) -> dict[str, Any]:
    """How many requests of each cell lie between every two of the group's `edges`, which are in ms."""
    times_ms = [middles_ns(one.values.indices) / NS_PER_MS for one in group]
    low = max(LEAST_MS, min(float(times.min()) for times in times_ms)) / MARGIN
    high = max(float(times.max()) for times in times_ms) * MARGIN
    is_wide = high / low > WIDE
    bins = bins_for(max(one.values.total for one in group))
    spaced = np.geomspace if is_wide else np.linspace
    edges = [float(f"{edge:.4g}") for edge in spaced(low, high, bins + 1)]
    lines = [
        one.label | {"counts": counts_between(edges, times, one.values)}
        for one, times in zip(group, times_ms, strict=True)
    ]
    return {"edges": edges, "log": is_wide, "lines": lines}


def bins_for(results: int) -> int:
    """As many as so many results can fill."""
    return min(MOST_BINS, max(FEWEST_BINS, round(2 * sqrt(results))))


def counts_between(edges: Sequence[float], times_ms: Floats, values: Buckets) -> list[int]:
    """How many values lie between every two edges; those outside all are in the first or the last."""
    places = np.searchsorted(np.asarray(edges[1:-1]), times_ms, side="right")
    counts = np.bincount(places, weights=values.counts, minlength=len(edges) - 1)
    return [round(count) for count in counts.tolist()]


DISTRIBUTION = Question("distribution", "Latency distribution", (charts,))
