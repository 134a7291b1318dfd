"""A study's events until now, as families of metrics: made when they are asked for."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import NativeHistogram

from reports.fold.windows import Results
from reports.machines.gpus import HELD_BY
from swarm.events import HealthEvent, PhaseStarted, RunEnded, SampleEvent, WindowEvent, WorkerSecond
from swarm.exporters import metrics
from swarm.exporters.latency_buckets import NS_PER_S, LatencyBuckets

FRESH_S = 5.0
"""A value reported once a second, and then not for this long, no longer holds."""
MOST_TOLD = 500
"""Seconds of a phase that are kept for a while: more of one may arrive."""
KEEP_S = 300.0
"""How long a histogram without new results is shown; it returns with new ones. Keeps scrapes short."""
ENDS = ("ok", "failed")
"""How a request ends."""


class Series(NamedTuple):
    """What totals are counted by, as metrics.RUN names it."""

    endpoint: str
    cell: str
    phase: str


@dataclass
class Totals:
    """What came back of a series, or is counted else of it, by name: never less than before."""

    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    latencies: LatencyBuckets = field(default_factory=LatencyBuckets)

    @classmethod
    def of(cls, found: Results) -> "Totals":
        """Of the results of a second."""
        counts = Counter(ok=found.ok, failed=found.failures, images=found.images, late=found.late or 0)
        if found.good is not None and found.finished:
            counts["good"] = found.good
        return cls(counts, Counter(found.failure_kinds), LatencyBuckets.of(found.histogram("latency")))

    def add(self, now: "Totals", before: "Totals") -> None:
        """Takes in what a second has more than it had before."""
        self.counts.update(now.counts)
        self.counts.subtract(before.counts)
        self.kinds.update(now.kinds)
        self.kinds.subtract(before.kinds)
        self.latencies.add(now.latencies)
        self.latencies.add(before.latencies, -1)


class LatencyFamily(HistogramMetricFamily):
    """The classic histograms of some series, and beside them, by the labels' values, the native ones."""

    def __init__(self, known: Mapping[Series, LatencyBuckets]) -> None:
        about = metrics.LATENCY
        super().__init__(about.name, about.about, labels=about.labels)
        self.native: dict[tuple[str, ...], NativeHistogram] = {}
        for series, one in known.items():
            self.add_metric(series, one.up_to(), one.sum_ns / NS_PER_S)
            self.native[series] = one.exponential()


class Live(Collector):
    """Listens to a study's events, and tells of them when it is asked.

    `clock` counts seconds. Totals never fall; of what changes only what is fresh is told.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._series = defaultdict[Series, Totals](Totals)
        self._heard: dict[Series, float] = {}
        """When the last latencies arrived."""
        self._told: dict[tuple[Series, int, int], Totals] = {}
        """For the latest seconds, which may get more records: what each has added to its series."""
        self._workers: dict[str, tuple[float, WorkerSecond]] = {}
        self._sample: tuple[float, SampleEvent | None] = (-inf, None)
        self._run: tuple[float, tuple[str, ...]] = (-inf, ())
        self._serving: dict[str, Mapping[str, Any]] = {}
        """How the server is set, by the current cell; empty where it does not tell."""

    def on_window(self, window: WindowEvent, **_: Any) -> None:
        """A second of all workers; one that comes again adds what is new in it."""
        for phase, found in window.results.items():
            series = Series(window.endpoint, window.cell, phase)
            key, totals = (series, window.repeat, window.second), Totals.of(found)
            before = self._told.pop(key, Totals())
            self._series[series].add(totals, before)
            self._told[key] = totals
            if totals.counts["ok"] > before.counts["ok"]:
                self._heard[series] = self._clock()
        for key in list(self._told)[:-MOST_TOLD]:
            del self._told[key]

    def on_health(self, health: HealthEvent, **_: Any) -> None:
        """How the workers fare."""
        self._workers |= {name: (self._clock(), one) for name, one in health.workers.items()}

    def on_sample(self, sample: SampleEvent, **_: Any) -> None:
        """What server, GPUs and host said."""
        self._sample = (self._clock(), sample)
        self._run = (self._clock(), (sample.cell, str(sample.repeat), sample.phase))

    def on_phase_started(self, phase: PhaseStarted, **_: Any) -> None:
        """Which run is under way is known at once; with its first phase comes how its server is set."""
        if phase.serving:
            self._serving = {phase.cell: phase.serving}
        self._run = (self._clock(), (phase.cell, str(phase.repeat), phase.phase))

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """Arrivals that were never sent are known at the end."""
        if run.summary is not None and run.summary.sent.dropped:
            series = Series(run.summary.endpoint, run.cell, "measure")
            self._series[series].counts["dropped"] += run.summary.sent.dropped

    def collect(self) -> Iterator[Metric]:
        """Every family that has a sample."""
        now = self._clock()
        said = {name: one for name, (at, one) in self._workers.items() if now - at <= FRESH_S}
        sample = self._sample[1] if now - self._sample[0] <= FRESH_S else None
        run = self._run[1] if now - self._run[0] <= FRESH_S else ()
        serving = {cell: told for cell, told in self._serving.items() if cell in run}
        run_info = metrics.RUN_INFO.family({run: 1} if run else {})
        for family in (*self._totals(now), *workers(said), *samples(sample), *served(serving), run_info):
            if family.samples:
                yield family

    def _totals(self, now: float) -> Iterator[Metric]:
        """Counters since the process started, and the latencies of successes."""
        counts = {of: one.counts for of, one in self._series.items()}
        yield metrics.REQUESTS.family({(*of, end): one[end] for of, one in counts.items() for end in ENDS})
        for about in metrics.COUNTED:
            # One that was never told of is unknown, not 0.
            yield about.family({of: one.get(about.field) for of, one in counts.items()})
        failures = Counter[tuple[str, str]]()
        for of, one in self._series.items():
            failures.update({(of.endpoint, kind): count for kind, count in one.kinds.items()})
        yield metrics.FAILURES.family(failures)
        yield LatencyFamily(
            {of: self._series[of].latencies for of, heard in self._heard.items() if now - heard <= KEEP_S}
        )


def workers(said: Mapping[str, WorkerSecond]) -> Iterator[Metric]:
    """The load generators, one by one and together, by each one's last word."""
    for about in metrics.STANDING:
        known = [value for one in said.values() if (value := about.of(one)) is not None]
        yield about.family({(): sum(known)} if known else {})
    for about in metrics.OF_WORKERS:
        yield about.family({(name,): about.of(one) for name, one in said.items()})


def samples(sample: SampleEvent | None) -> Iterator[Metric]:
    """What server, GPUs and host said last."""
    if sample is None:
        return
    endpoint = sample.endpoint
    yield from of_server(endpoint, sample.server)
    yield metrics.PENDING.family({(endpoint,): metrics.PENDING.of(sample)})
    yield metrics.REPLICAS.family({(endpoint, state): count for state, count in sample.replicas.items()})
    for about in metrics.OF_HOST:
        yield about.family({(): about.of(sample)})
    for about in metrics.OF_GPUS:
        yield about.family({(gpu["id"],): about.of(gpu) for gpu in sample.gpus})
    yield metrics.GPU_HELD.family({key: held for gpu in sample.gpus for key, held in held_clocks(gpu)})


def of_server(endpoint: str, told: Mapping[str, Any]) -> Iterator[Metric]:
    """The server's own counters: times and counts."""
    numbers = {name: value for name, value in told.items() if isinstance(value, int | float)}
    parts = {(endpoint, name[:-3]): ns / NS_PER_S for name, ns in numbers.items() if name.endswith("_ns")}
    counts = {(endpoint, name): count for name, count in numbers.items() if not name.endswith("_ns")}
    yield metrics.SERVER_TIME.family(parts)
    yield metrics.SERVER_COUNT.family(counts)


def served(serving: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    """How the server is set, by cell."""
    for about in metrics.OF_SERVING:
        yield about.family({(cell,): about.of(told) for cell, told in serving.items()})


def held_clocks(gpu: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """By (GPU, reason) whether it holds the clocks down; nothing where the GPU does not tell."""
    if (bits := gpu.get("throttle_reasons")) is None:
        return
    for reason in dict.fromkeys(HELD_BY.values()):
        held = any(int(bits) & bit for bit, name in HELD_BY.items() if name == reason)
        yield (gpu["id"], reason.partition(" ")[2]), int(held)
