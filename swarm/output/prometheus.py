"""Live figures for Prometheus, on a port of the master: made when scraped, from what is known by then."""

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from gevent import socket
from gevent.pywsgi import WSGIServer
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reports.fold.windows import Results
from reports.histogram import buckets, codec
from swarm.errors import UsageError
from swarm.output.allowed_hosts import guarded

BOUNDS_S = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
"""Upper bounds of the latency buckets; a last one has none."""
FRESH_S = 5.0
"""What was said once a second, and then no more for so long, holds no more."""
KEEP_S = 300.0
"""A histogram without new results is shown for so long, and again when it gets some: scrapes stay short."""
BUCKETS = (*map(str, BOUNDS_S), "+Inf")
NS_PER_S = 1e9
BEYOND = buckets.indices_of(np.rint(np.array(BOUNDS_S) * 1e6).astype(np.int64)) + 1
"""For each bound, the first counter beyond it: its lowest value decides, within 0.1 % of all."""
GPU_GAUGES = {
    "util_pct": ("inferswarm_gpu_utilization_percent", "Share of the time in which the GPU computed"),
    "memory_bytes": ("inferswarm_gpu_memory_bytes", "GPU memory in use"),
    "power_w": ("inferswarm_gpu_power_watts", "What the GPU draws"),
    "sm_clock_mhz": ("inferswarm_gpu_sm_clock_mhz", "Clock of the GPU's multiprocessors"),
}


class Series(NamedTuple):
    """What totals are counted by; repeats of a cell add up."""

    endpoint: str
    cell: str
    phase: str


class Totals(Results):
    """What came back of a series; of latencies only how many lie in each of BUCKETS, and their sum."""

    def __init__(self) -> None:
        super().__init__(names=frozenset())
        self._counts = np.zeros(len(BUCKETS), np.int64)
        self.sum_s = 0.0

    def add_latencies(self, found: buckets.Buckets) -> None:
        """Takes in those of a window."""
        np.add.at(self._counts, np.searchsorted(BEYOND, found.indices, side="right"), found.counts)
        self.sum_s += float(buckets.middles_ns(found.indices) / NS_PER_S @ found.counts)

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, how many lie below it), the last for all."""
        return list(zip(BUCKETS, accumulate(self._counts.tolist()), strict=True))


class Live(Collector):
    """Hears records as they are written into the ledger, and tells of them when it is scraped.

    `clock` counts seconds. Totals never fall; of what changes only what is fresh is told.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._series: dict[Series, Totals] = {}
        self._heard: dict[Series, float] = {}
        """When the last latencies came."""
        self._dropped = Counter[Series]()
        self._failures = Counter[tuple[str, str]]()
        self._workers: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._sample: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._run: tuple[float, Mapping[str, Any]] = (0.0, {})

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Any record of a ledger; of those that say nothing here, nothing is kept."""
        now, kind = self._clock(), record["kind"]
        if kind == "window":
            self._on_window(record, now)
        elif kind == "health":
            self._workers[record["worker"]] = (now, record)
        elif kind == "drained":
            self._dropped[series_of(record)] += record.get("dropped") or 0
        elif kind == "sample":
            self._sample = (now, record)
        if kind in ("sample", "phase"):
            self._run = (now, record)

    def _on_window(self, window: Mapping[str, Any], now: float) -> None:
        series = series_of(window)
        totals = self._series.setdefault(series, Totals())
        totals.add([window])
        if "latency" in window["histograms"]:
            totals.add_latencies(codec.decoded(window["histograms"]["latency"]))
            self._heard[series] = now
        for kind, count in window["failures"].items():
            self._failures[series.endpoint, kind] += count

    def collect(self) -> Iterator[Metric]:
        """Every family that has a sample."""
        now = self._clock()
        said = {name: health for name, (at, health) in self._workers.items() if now - at <= FRESH_S}
        sample, run = (told if now - at <= FRESH_S else {} for at, told in (self._sample, self._run))
        # Which run is under way, as its last sample or phase record says.
        tags = {(run["cell"], str(run["repeat"]), run["phase"]): 1} if run else {}
        run_info = gauge("inferswarm_run_info", "The run under way", ("cell", "repeat", "phase"), tags)
        for family in (*self._totals(now), *workers(said), *samples(sample), run_info):
            if family.samples:
                yield family

    def _totals(self, now: float) -> Iterator[Metric]:
        """Counters since the process started, and the latencies of successes."""
        series, labels = self._series, (*Series._fields, "outcome")
        finished = {(*of, "ok"): one.ok for of, one in series.items()}
        finished |= {(*of, "failed"): one.failures for of, one in series.items()}
        images = {of: one.images for of, one in series.items()}
        late = {of: one.late or 0 for of, one in series.items()}
        yield counter("inferswarm_requests", "Requests finished, as users saw it", labels, finished)
        yield counter("inferswarm_images", "Images embedded", Series._fields, images)
        yield counter("inferswarm_late", "Requests begun more than 5 ms late", Series._fields, late)
        yield counter("inferswarm_dropped", "Arrivals never sent", Series._fields, self._dropped)
        yield counter("inferswarm_failures", "Requests that failed", ("endpoint", "kind"), self._failures)
        family = HistogramMetricFamily(
            "inferswarm_latency_seconds", "From a request's intended start to its end", labels=Series._fields
        )
        for of, heard in self._heard.items():
            if now - heard <= KEEP_S:
                family.add_metric(of, series[of].buckets, series[of].sum_s)
        yield family


def series_of(record: Mapping[str, Any]) -> Series:
    """The series that a window or a drained line belongs to."""
    return Series(endpoint_of(record["cell"]), record["cell"], record["phase"])


def lag_p99_s(health: Mapping[str, Any]) -> float | None:
    """Of a worker's event loop; None where it was not measured. Raises HistogramError."""
    (lag_ns,) = buckets.percentiles_ns(codec.decoded(health["lag"]), [99.0])
    return None if lag_ns is None else lag_ns / NS_PER_S


def endpoint_of(cell: str) -> str:
    """The endpoint's name, with which a cell's begins."""
    return cell.partition("/")[0]


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
        named = (
            f"--prometheus-port {port}: cannot listen on {host} ({reason.lower()}); give a port that is free"
        )
        if not known or error.errno == errno.EADDRNOTAVAIL:
            reason = reason.partition(" (")[0].lower()
            named = f"--prometheus-host {host}: is no address of this machine ({reason}); name another"
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


def workers(said: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    """The load generators, one by one and together, by each one's last word."""
    users, in_flight = (
        {(): sum(one[name] for one in said.values())} if said else {} for name in ("users", "in_flight")
    )
    cpu = {(name,): one["cpu_pct"] for name, one in said.items()}
    lag = {(name,): lag_p99_s(one) for name, one in said.items()}
    yield gauge("inferswarm_users", "Users of all workers", (), users)
    yield gauge("inferswarm_in_flight", "Requests not yet answered", (), in_flight)
    yield gauge("inferswarm_worker_cpu_percent", "Of one core, in the last second", ("worker",), cpu)
    yield gauge("inferswarm_worker_lag_p99_seconds", "Lag of the worker's event loop", ("worker",), lag)


def samples(sample: Mapping[str, Any]) -> Iterator[Metric]:
    """What server, GPUs and host said last."""
    if not sample:
        return
    endpoint, counters = endpoint_of(sample["cell"]), sample.get("server", {})
    parts = {(endpoint, name.removesuffix("_ns")): ns / 1e9 for name, ns in counters.items() if "_ns" in name}
    counts = {(endpoint, name): count for name, count in counters.items() if "_ns" not in name}
    yield counter("inferswarm_server_seconds", "Time in the server, by part", ("endpoint", "part"), parts)
    yield counter("inferswarm_server_count", "What the server counted", ("endpoint", "what"), counts)
    pending = {(endpoint,): sample.get("pending_requests")}
    yield gauge("inferswarm_pending_requests", "Requests waiting in the server", ("endpoint",), pending)
    host = {(): sample.get("host", {}).get("cpu_pct")}
    yield gauge("inferswarm_host_cpu_percent", "Of all cores of the master's machine", (), host)
    for key, (name, about) in GPU_GAUGES.items():
        yield gauge(name, about, ("gpu",), {(gpu["id"],): gpu.get(key) for gpu in sample.get("gpus", ())})
