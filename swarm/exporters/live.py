"""A study's events until now, as families of metrics: made when they are asked for."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import NativeHistogram

from reports.fold.windows import Results
from reports.machines.gpus import HELD_BY
from swarm.events import (
    HealthEvent,
    PhaseStarted,
    RunEnded,
    RunStarted,
    SampleEvent,
    WindowEvent,
    WorkerSecond,
)
from swarm.exporters import metrics
from swarm.exporters.latency_buckets import NS_PER_S, LatencyBuckets
from swarm.output.run_fold import KEPT

FRESH_S = 5.0
"""A value reported once a second, and then not for this long, no longer holds."""
KEEP_S = 300.0
"""How long a histogram without new results is shown; it returns with new ones. Keeps scrapes short."""
ENDS = ("ok", "failed")
"""How a request ends."""
Told = TypeVar("Told")


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
        # What holds now, by cell, of which several may run at the same time; and when it was told.
        self._workers: dict[str, dict[str, tuple[float, WorkerSecond]]] = {}
        self._samples: dict[str, tuple[float, SampleEvent]] = {}
        self._runs: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._serving: dict[str, Mapping[str, Any]] = {}
        self._counted: dict[str, Mapping[str, Any]] = {}
        """By endpoint, what its server counted last."""
        self._over = set[str]()
        """Cells whose run has ended since the last one began."""

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
        for key in [key for key in self._told if key[2] < window.second - KEPT]:
            del self._told[key]

    def on_health(self, health: HealthEvent, **_: Any) -> None:
        """How the workers fare."""
        told = {name: (self._clock(), one) for name, one in health.workers.items()}
        self._workers.setdefault(health.cell, {}).update(told)

    def on_sample(self, sample: SampleEvent, **_: Any) -> None:
        """What server, GPUs and host said."""
        before = self._counted.get(sample.endpoint, {})
        self._counted[sample.endpoint] = server = rising(before, sample.server)
        self._samples[sample.cell] = (self._clock(), replace(sample, server=server))
        self._runs[sample.cell] = (self._clock(), (sample.cell, str(sample.repeat), sample.phase))

    def on_run_started(self, run: RunStarted, **_: Any) -> None:
        """What was so in runs that are over is so no more."""
        for cell in self._over:
            for known in (self._workers, self._samples, self._runs, self._serving):
                known.pop(cell, None)
        self._over.clear()

    def on_phase_started(self, phase: PhaseStarted, **_: Any) -> None:
        """Which run is under way is known at once; with its first phase comes how its server is set."""
        if phase.serving:
            self._serving[phase.cell] = phase.serving
        self._runs[phase.cell] = (self._clock(), (phase.cell, str(phase.repeat), phase.phase))

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """Arrivals that were never sent are known at the end."""
        self._over.add(run.cell)
        if run.summary is not None and run.summary.sent.dropped:
            series = Series(run.summary.endpoint, run.cell, "measure")
            self._series[series].counts["dropped"] += run.summary.sent.dropped

    def collect(self) -> Iterator[Metric]:
        """Every family that has a sample."""
        now = self._clock()
        said = [told for one in self._workers.values() for told in fresh(one, now).items()]
        known, runs = [*fresh(self._samples, now).values()], fresh(self._runs, now)
        serving = {cell: told for cell, told in self._serving.items() if cell in runs}
        run_info = metrics.RUN_INFO.family(dict.fromkeys(runs.values(), 1))
        for family in (*self._totals(now), *workers(said), *samples(known), *served(serving), run_info):
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


def fresh(known: Mapping[str, tuple[float, Told]], now: float) -> dict[str, Told]:
    """What was told lately."""
    return {name: told for name, (at, told) in known.items() if now - at <= FRESH_S}


def workers(said: Sequence[tuple[str, WorkerSecond]]) -> Iterator[Metric]:
    """The load generators, one by one and together, by the last word of each on each of its cells."""
    for about in metrics.STANDING:
        known = [value for _, one in said if (value := about.of(one)) is not None]
        yield about.family({(): sum(known)} if known else {})
    for about in metrics.OF_WORKERS:
        yield about.family({(name,): about.of(one) for name, one in said})


def samples(known: Sequence[SampleEvent]) -> Iterator[Metric]:
    """What the servers, GPUs and host said last."""
    of_endpoint = {one.endpoint: one for one in known}
    gpus = {gpu["id"]: gpu for one in known for gpu in one.gpus}
    yield from of_servers({endpoint: one.server for endpoint, one in of_endpoint.items()})
    yield metrics.PENDING.family({(of,): metrics.PENDING.of(one) for of, one in of_endpoint.items()})
    replicas = {of: one.replicas.items() for of, one in of_endpoint.items()}
    yield metrics.REPLICAS.family({(of, state): n for of, told in replicas.items() for state, n in told})
    for about in metrics.OF_HOST:
        yield about.family({(): about.of(known[-1])} if known else {})
    for about in metrics.OF_GPUS:
        yield about.family({(gpu,): about.of(told) for gpu, told in gpus.items()})
    yield metrics.GPU_HELD.family({key: held for told in gpus.values() for key, held in held_clocks(told)})


def rising(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """A server's counters, of which those that fall a little stay as they were: they are sums and differences
    of numbers that it does not count at the same moment. To Prometheus each fall is a new start.

    >>> rising({"requests": 100, "queue_ns": 70}, {"requests": 99, "queue_ns": 5})
    {'requests': 100, 'queue_ns': 5}
    """

    def told(name: str, value: Any) -> Any:
        was = before.get(name)
        return was if isinstance(was, int | float) and was / 2 < value < was else value

    return {name: told(name, value) for name, value in now.items()}


def of_servers(told: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    """The servers' own counters, by endpoint: times and counts."""
    numbers = {
        (endpoint, name): value
        for endpoint, counters in told.items()
        for name, value in counters.items()
        if isinstance(value, int | float)
    }
    times = {(of, name[:-3]): ns / NS_PER_S for (of, name), ns in numbers.items() if name.endswith("_ns")}
    yield metrics.SERVER_TIME.family(times)
    yield metrics.SERVER_COUNT.family({key: n for key, n in numbers.items() if not key[1].endswith("_ns")})


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
