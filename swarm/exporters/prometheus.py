"""Live figures for Prometheus, on a port of the master: made when scraped, from the events until then."""

import errno
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np
from gevent import socket
from gevent.pywsgi import WSGIServer
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reports.fold.windows import Results
from reports.histogram import buckets
from swarm.errors import UsageError
from swarm.events import HealthEvent, PhaseStarted, RunEnded, SampleEvent, WindowEvent, WorkerSecond
from swarm.output.allowed_hosts import guarded

BOUNDS_S = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
"""Upper bounds of the latency buckets; the last bucket has none."""
FRESH_S = 5.0
"""A value reported once a second, and then not for this long, no longer holds."""
MOST_TOLD = 500
"""Seconds of a phase that are kept for a while: more of one may arrive."""
KEEP_S = 300.0
"""How long a histogram without new results is shown; it returns with new ones. Keeps scrapes short."""
BUCKETS = (*map(str, BOUNDS_S), "+Inf")
NS_PER_S = 1e9
BEYOND = buckets.indices_of(np.rint(np.array(BOUNDS_S) * 1e6).astype(np.int64)) + 1
"""For each bound, the first counter beyond it, by its lowest value: exact within 0.1 %."""
COUNTED = {
    "images": ("inferswarm_images", "Images embedded"),
    "good": ("inferswarm_good", "Requests that succeeded within the limit of --slo"),
    "late": ("inferswarm_late", "Requests started more than 5 ms late"),
    "dropped": ("inferswarm_dropped", "Arrivals never sent"),
}
STANDING = {
    "users": ("inferswarm_users", "Users on all workers"),
    "in_flight": ("inferswarm_in_flight", "Requests not yet answered"),
}
GPU_GAUGES = {
    "util_pct": ("inferswarm_gpu_utilization_percent", "Share of the time in which the GPU computed"),
    "memory_bytes": ("inferswarm_gpu_memory_bytes", "GPU memory in use"),
    "power_w": ("inferswarm_gpu_power_watts", "GPU power draw"),
    "sm_clock_mhz": ("inferswarm_gpu_sm_clock_mhz", "Clock of the GPU's multiprocessors"),
}


class Series(NamedTuple):
    """What totals are counted by; repeats of a cell add up."""

    endpoint: str
    cell: str
    phase: str


class Totals(Counter[str]):
    """What came back of a series, or is counted else of it, by name: never less than before."""

    @classmethod
    def of(cls, found: Results) -> Self:
        """Of the results of a second; of latencies how many lie in each of BUCKETS, and their sum."""
        latency = found.histogram("latency")
        counts = np.zeros(len(BUCKETS), np.int64)
        np.add.at(counts, np.searchsorted(BEYOND, latency.indices, side="right"), latency.counts)
        sum_ns = round(float(buckets.middles_ns(latency.indices) @ latency.counts))
        own = {"ok": found.ok, "failed": found.failures, "images": found.images, "late": found.late or 0}
        own |= {} if found.good is None or not found.finished else {"good": found.good}
        kinds = {f"kind {kind}": count for kind, count in found.failure_kinds.items()}
        return cls({**own, **kinds, "sum_ns": sum_ns, **dict(zip(BUCKETS, counts.tolist(), strict=True))})

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, how many lie below it), the last for all."""
        return list(zip(BUCKETS, accumulate(self[name] for name in BUCKETS), strict=True))


class Live(Collector):
    """Listens to a study's events, and tells of them when it is scraped.

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

    def on_window(self, window: WindowEvent, **_: Any) -> None:
        """A second of all workers; one that comes again adds what is new in it."""
        for phase, found in window.results.items():
            series = Series(window.endpoint, window.cell, phase)
            key, totals = (series, window.repeat, window.second), Totals.of(found)
            added = Totals(totals)
            added.subtract(self._told.pop(key, {}))
            self._series[series].update(added)
            self._told[key] = totals
            if added["ok"]:
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
        """Which run is under way is known at once."""
        self._run = (self._clock(), (phase.cell, str(phase.repeat), phase.phase))

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """Arrivals that were never sent are known at the end."""
        if run.summary is not None and run.summary.sent.dropped:
            series = Series(run.summary.endpoint, run.cell, "measure")
            self._series[series].update({"dropped": run.summary.sent.dropped})

    def collect(self) -> Iterator[Metric]:
        """Every family that has a sample."""
        now = self._clock()
        said = {name: one for name, (at, one) in self._workers.items() if now - at <= FRESH_S}
        sample = self._sample[1] if now - self._sample[0] <= FRESH_S else None
        run = {self._run[1]: 1} if now - self._run[0] <= FRESH_S else {}
        run_info = gauge("inferswarm_run_info", "The current run", ("cell", "repeat", "phase"), run)
        for family in (*self._totals(now), *workers(said), *samples(sample), run_info):
            if family.samples:
                yield family

    def _totals(self, now: float) -> Iterator[Metric]:
        """Counters since the process started, and the latencies of successes."""
        series, labels = self._series, Series._fields
        finished = {(*of, what): one[what] for of, one in series.items() for what in ("ok", "failed")}
        counts = {name: {of: one[name] for of, one in series.items() if name in one} for name in COUNTED}
        failures = Counter[tuple[str, str]]()
        for of, one in series.items():
            failures.update({(of.endpoint, name[5:]): n for name, n in one.items() if name[:5] == "kind "})
        yield counter(
            "inferswarm_requests", "Requests finished, as users saw it", (*labels, "outcome"), finished
        )
        for key, (name, about) in COUNTED.items():
            yield counter(name, about, labels, counts[key])
        yield counter("inferswarm_failures", "Requests that failed", ("endpoint", "kind"), failures)
        family = HistogramMetricFamily(
            "inferswarm_latency_seconds", "From a request's intended start to its end", labels=labels
        )
        for of, heard in self._heard.items():
            if now - heard <= KEEP_S:
                family.add_metric(of, series[of].buckets, series[of]["sum_ns"] / NS_PER_S)
        yield family


def start_exporter(host: str, port: int, live: Live) -> WSGIServer:
    """Serve `http://host:port/metrics` until the returned server is stopped. Raises UsageError."""
    registry = CollectorRegistry()
    registry.register(live)
    # Compressing would take longer than all the rest, in the process that measures.
    application = guarded(make_wsgi_app(registry, disable_compression=True))
    server = WSGIServer(listener(host, port), application, log=None)
    server.start()
    return server


def listener(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # create_server adds the address to the system's words; a name that is not found has other numbers.
        known = error.errno in errno.errorcode
        reason = os.strerror(error.errno or 0) if known else str(error.strerror or error)
        named = f"--prometheus-port {port}: cannot listen on {host} ({reason.lower()}); give a free port"
        if not known or error.errno == errno.EADDRNOTAVAIL:
            reason = reason.partition(" (")[0].lower()
            named = f"--prometheus-host {host}: is not an address of this machine ({reason}); name another"
        raise UsageError(named) from error


def family_of(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    about: str,
    labels: Iterable[str],
    values: Mapping[Any, float | None],
) -> Metric:
    """A family with a sample for each value that is known; they are keyed by the labels' values."""
    family = kind(name, about, labels=tuple(labels))
    for key, value in values.items():
        if value is not None:
            family.add_metric(key, value)
    return family


counter = partial(family_of, CounterMetricFamily)
gauge = partial(family_of, GaugeMetricFamily)


def workers(said: Mapping[str, WorkerSecond]) -> Iterator[Metric]:
    """The load generators, one by one and together, by each one's last word."""
    for key, (name, about) in STANDING.items():
        known = [value for one in said.values() if (value := getattr(one, key)) is not None]
        yield gauge(name, about, (), {(): sum(known)} if known else {})
    cpu = {(name,): one.cpu_pct for name, one in said.items()}
    lag = {(name,): one.loop_lag_p99_ns and one.loop_lag_p99_ns / NS_PER_S for name, one in said.items()}
    yield gauge("inferswarm_worker_cpu_percent", "Of one core, in the last second", ("worker",), cpu)
    yield gauge("inferswarm_worker_lag_p99_seconds", "Lag of the worker's event loop", ("worker",), lag)


def samples(sample: SampleEvent | None) -> Iterator[Metric]:
    """What server, GPUs and host said last."""
    if sample is None:
        return
    endpoint, counters = sample.endpoint, sample.server
    parts = {(endpoint, name.removesuffix("_ns")): ns / 1e9 for name, ns in counters.items() if "_ns" in name}
    counts = {(endpoint, name): count for name, count in counters.items() if "_ns" not in name}
    yield counter("inferswarm_server_seconds", "Time in the server, by part", ("endpoint", "part"), parts)
    yield counter("inferswarm_server_count", "What the server counted", ("endpoint", "what"), counts)
    pending = {(endpoint,): sample.pending_requests}
    yield gauge("inferswarm_pending_requests", "Requests waiting in the server", ("endpoint",), pending)
    host = {(): sample.host_cpu_pct}
    yield gauge("inferswarm_host_cpu_percent", "Of all cores of the master's machine", (), host)
    for key, (name, about) in GPU_GAUGES.items():
        yield gauge(name, about, ("gpu",), {(gpu["id"],): gpu.get(key) for gpu in sample.gpus})
