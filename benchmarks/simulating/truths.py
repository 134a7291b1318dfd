"""Planted truths: runs that are drawn from a known law of latencies, and the percentiles that the law has.

Beside them runs as rows of cells.csv and studies, as what compares and judges studies reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtr

from reports.cells_csv.rows import Row
from reports.cells_csv.sides import STUDY, Side
from reports.fold.windows import Results
from reports.histogram.buckets import NS_PER_US, Buckets, compact, indices_of
from reports.ledger.ledger import Record
from reports.summary.blocks import RunBlocks

Floats = npt.NDArray[np.float64]
Random = np.random.Generator
NS_PER_MS = 1e6
LEAST_SPREAD = 1e-9
"""Of logarithms: a law without any spread is solved as one with so little."""
FARTHEST = 12.0
"""Standard deviations from the lowest and the highest median within which every percentile lies."""


@dataclass(frozen=True)
class Run:
    """What came back in each second of a run: the latencies of successes in ns, and how many failed."""

    seconds: Sequence[Floats]
    failures: Sequence[int] = ()

    @property
    def latencies_ns(self) -> Floats:
        """Of all successes."""
        return np.concatenate(self.seconds)

    @cached_property
    def results(self) -> list[Results]:
        """Each second as the suite holds it, those without a request included."""
        failures = self.failures or [0] * len(self.seconds)
        return [results_of(*one) for one in zip(self.seconds, failures, strict=True)]

    @property
    def whole(self) -> Results:
        """All seconds together."""
        found = Results()
        for second in self.results:
            found.merge(second)
        return found

    @property
    def blocks(self) -> RunBlocks:
        """The run as gates and percentiles read it."""
        found = RunBlocks()
        for second, results in enumerate(self.results):
            found.merge(second, results)
        return found

    def slowed(self, factors: Floats) -> Run:
        """The same, each second slower by its factor."""
        each = zip(self.seconds, factors.tolist(), strict=True)
        return Run([second * factor for second, factor in each], self.failures)


def results_of(latencies_ns: Floats, failures: int = 0) -> Results:
    """Successes with these latencies, which are their service times too, and so many timeouts."""
    histogram = buckets_of(latencies_ns)
    size = len(latencies_ns)
    kinds = Counter(timeout=int(failures)) if failures else Counter[str]()
    held = {"latency": histogram, "service_time": histogram} if size else {}
    return Results(ok=size, images=size, failure_kinds=kinds, histograms=held)


def buckets_of(latencies_ns: Floats) -> Buckets:
    """The histogram of some latencies, as a ledger's text of them is read."""
    indices = indices_of(np.rint(latencies_ns / NS_PER_US).astype(np.int64))
    return compact([Buckets(indices, np.ones(len(indices), np.int64))])


def a_row(cell: str, repeat: int, numbers: Mapping[str, float]) -> Row:
    """A run of some users as cells.csv has it; the cell is called endpoint/batch/users."""
    endpoint, _, users = cell.split("/")
    return Row(
        study="simulated",
        cell=cell,
        endpoint=endpoint,
        backend="onnx",
        protocol="http",
        payload="fp32",
        batch=1,
        load="closed",
        level=float(users.removeprefix("c")),
        numbers={"repeat": repeat, **numbers},
    )


def a_side(rows: Iterable[Row], header: Record | None = None) -> Side:
    """A complete study of some runs."""
    name = "simulated"
    return Side(name=name, kind=STUDY, place="", rows=tuple(rows), header=header or {}, status="complete")


@dataclass(frozen=True)
class Law:
    """A latency is a product of a median, the request's own factor, its second's, its run's and its time's.

    `medians_ms` are drawn with `weights`. `request`, `second` and `run` are standard deviations of the
    logarithms of lognormal factors. `kept` is the correlation of neighbouring seconds (AR(1)). Requests come
    back in executed batches of `batch`, which share their latency and their second: the counts of seconds are
    multiples of it. Each regime of `regime_s` seconds has one of `levels` as its factor, by chance, and a run
    begins anywhere in one. The logarithm grows by `drift_per_s`.
    """

    medians_ms: tuple[float, ...] = (30.0,)
    weights: tuple[float, ...] = (1.0,)
    request: float = 0.25
    second: float = 0.0
    kept: float = 0.0
    run: float = 0.0
    batch: int = 1
    levels: tuple[float, ...] = (1.0,)
    regime_s: int = 60
    drift_per_s: float = 0.0
    per_s: float = 100.0

    def draw(self, seconds: int, random: Random) -> Run:
        """One run of so many seconds."""
        offset = random.uniform(0, self.batch)
        ends = (offset + self.batch * np.arange(int(self.per_s * seconds / self.batch) + 1)) / self.per_s
        ends = ends[ends < seconds].astype(np.int64)
        logs = np.log(random.choice(self.medians_ms, len(ends), p=self.weights))
        logs += self.request * random.standard_normal(len(ends)) + self._slow(seconds, random)[ends]
        edges = np.searchsorted(ends, np.arange(1, seconds))
        parts = np.split(np.exp(logs) * NS_PER_MS, edges)
        return Run([np.repeat(part, self.batch) for part in parts])

    def draws(self, runs: int, seconds: int, random: Random) -> list[Run]:
        """Several runs of so many seconds."""
        return [self.draw(seconds, random) for _ in range(runs)]

    def _slow(self, seconds: int, random: Random) -> Floats:
        """The logarithm of what the requests of each second share."""
        alike = ar1(seconds, self.second, self.kept, random) + self.run * random.standard_normal()
        regimes = (np.arange(seconds) + random.integers(self.regime_s)) // self.regime_s
        levels = random.choice(self.levels, regimes[-1] + 1)
        slow: Floats = alike + np.log(levels[regimes]) + self.drift_per_s * np.arange(seconds)
        return slow

    def percentile_ns(self, percent: float, seconds: int = 1) -> float:
        """The true one over all runs of so many seconds; these matter only where the law drifts."""
        return _percentile_ns(self, percent, seconds if self.drift_per_s else 1)

    @property
    def spread(self) -> float:
        """The standard deviation of the logarithm around a median at one level."""
        return float(np.sqrt(self.request**2 + self.second**2 + self.run**2))


@lru_cache(maxsize=1_000)
def _percentile_ns(law: Law, percent: float, seconds: int) -> float:
    """A mixture of lognormals: a component for each median, level and second."""
    grids = np.meshgrid(law.medians_ms, law.levels, np.exp(law.drift_per_s * np.arange(seconds)))
    middles = np.log(grids[0] * grids[1] * grids[2]).ravel()
    shares = np.meshgrid(law.weights, law.levels, np.arange(seconds))[0].ravel()
    shares = shares / shares.sum()
    spread = max(law.spread, LEAST_SPREAD)

    def missing(at: float) -> float:
        return float(shares @ ndtr((at - middles) / spread)) - percent / 100

    ends = middles.min() - FARTHEST * spread, middles.max() + FARTHEST * spread
    return float(np.exp(brentq(missing, *ends))) * NS_PER_MS


def ar1(count: int, spread: float, kept: float, random: Random) -> Floats:
    """Stationary values around 0 with a standard deviation, each correlated by `kept` with the one before."""
    fresh = spread * random.standard_normal(count)
    fresh[1:] *= np.sqrt(1 - kept**2)
    found: Floats = lfilter([1.0], [1.0, -kept], fresh)
    return found


LOGNORMAL = Law()
BIMODAL = Law(medians_ms=(10.0, 100.0), weights=(0.9, 0.1))
"""Nine of ten requests are answered from a fast path: p95 lies in the slow one."""
NOISY = Law(second=0.05, kept=0.8, run=0.03)
"""Seconds are alike, and runs differ."""
BATCHED = Law(second=0.03, kept=0.8, run=0.03, batch=32)
"""In executed batches of 32, of which a second has three or four."""
SLOW_BATCHES = Law(medians_ms=(700.0,), request=0.02, batch=32, per_s=45.7)
"""A batch each 0.7 s: the count of a second is 32 or 64."""
DRIFTING = Law(second=0.02, kept=0.8, drift_per_s=0.01)
"""1 % slower each second."""
SWITCHING = Law(second=0.02, kept=0.8, levels=(1.0, 1.3))
"""Regimes of a minute at two levels, so that a short run mostly sees one of them."""
LAWS = {
    "lognormal": LOGNORMAL,
    "bimodal": BIMODAL,
    "seconds alike, runs differ": NOISY,
    "batches of 32": BATCHED,
    "a batch each 0.7 s": SLOW_BATCHES,
    "drift of 1 % a second": DRIFTING,
    "regimes of 60 s": SWITCHING,
}
