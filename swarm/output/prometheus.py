"""Live figures for Prometheus, on a port of the master: made when scraped, from what is known by then."""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from gevent import socket
from gevent.pywsgi import WSGIServer
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reports.histogram import codec
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
STOP_S = 1.0
BUCKETS = (*map(str, BOUNDS_S), "+Inf")
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


@dataclass(frozen=True)
class Latency:
    """Successes by bucket, not cumulative, the last without a bound; and the sum of their latencies."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BOUNDS_S) + 1, np.int64))
    sum_s: float = 0.0
    heard: float = 0.0

    def plus(self, encoded: str, heard: float) -> Latency:
        """With a window's histogram, heard at this time of the clock. Raises HistogramError."""
        decoded = codec.decoded(encoded)
        buckets = np.searchsorted(ends_of_buckets(), decoded.indices, side="right")
        counts = self.counts.copy()
        np.add.at(counts, buckets, decoded.counts)
        return Latency(counts, self.sum_s + float(middles_s()[decoded.indices] @ decoded.counts), heard)


@dataclass(frozen=True)
class WorkerSnapshot:
    """One worker's last word; a lag of None is one that was not measured."""

    users: int
    in_flight: int
    cpu_pct: float
    lag_p99_s: float | None


@dataclass(frozen=True)
class Snapshot:
    """What is known at one moment; `run` is cell, repeat and phase of the run under way, if one is."""

    ok: Mapping[Series, int]
    failed: Mapping[Series, int]
    images: Mapping[Series, int]
    late: Mapping[Series, int]
    dropped: Mapping[Series, int]
    failures: Mapping[tuple[str, str], int]
    latencies: Mapping[Series, Latency]
    workers: Mapping[str, WorkerSnapshot]
    sample: Mapping[str, Any]
    run: tuple[str, int, str] | None


class Live:
    """Hears records as they are written into the ledger; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ok, self._failed, self._images = Counter[Series](), Counter[Series](), Counter[Series]()
        self._late, self._dropped = Counter[Series](), Counter[Series]()
        self._failures = Counter[tuple[str, str]]()
        self._latencies: dict[Series, Latency] = {}
        self._workers: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._sample: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._run: tuple[float, tuple[str, int, str] | None] = (0.0, None)
        middles_s(), ends_of_buckets()  # made now, and not beside the load

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Any record of a ledger; of those that say nothing here, nothing is kept."""
        hear = {"window": self.on_window, "health": self.on_health, "sample": self.on_sample}
        hear |= {"phase": self._on_phase, "drained": self._on_drained}
        if record["kind"] in hear:
            hear[record["kind"]](record)

    def on_window(self, window: Mapping[str, Any]) -> None:
        """Add a worker's second to the totals."""
        endpoint = endpoint_of(window["cell"])
        series = Series(endpoint, window["cell"], window["phase"])
        self._ok[series] += window["ok"]
        self._failed[series] += sum(window["failures"].values())
        self._images[series] += window["images"]
        self._late[series] += window["late"]
        for kind, count in window["failures"].items():
            self._failures[endpoint, kind] += count
        if "latency" in window["histograms"]:
            before = self._latencies.get(series, Latency())
            self._latencies[series] = before.plus(window["histograms"]["latency"], self._clock())

    def on_health(self, health: Mapping[str, Any]) -> None:
        """Keep a worker's last word."""
        self._workers[health["worker"]] = (self._clock(), health)

    def on_sample(self, sample: Mapping[str, Any]) -> None:
        """Keep what server, GPUs and host said last."""
        self._sample = (self._clock(), sample)
        self._on_phase(sample)

    def _on_drained(self, drained: Mapping[str, Any]) -> None:
        series = Series(endpoint_of(drained["cell"]), drained["cell"], drained["phase"])
        self._dropped[series] += drained.get("dropped") or 0

    def _on_phase(self, record: Mapping[str, Any]) -> None:
        self._run = (self._clock(), (record["cell"], record["repeat"], record["phase"]))

    def snapshot(self) -> Snapshot:
        """Totals, which never fall, and of what changes only what is fresh."""
        now = self._clock()
        fresh = {name: said for name, (at, said) in self._workers.items() if now - at <= FRESH_S}
        sample_at, sample = self._sample
        run_at, run = self._run
        return Snapshot(
            ok=dict(self._ok),
            failed=dict(self._failed),
            images=dict(self._images),
            late=dict(self._late),
            dropped=dict(self._dropped),
            failures=dict(self._failures),
            latencies={of: one for of, one in self._latencies.items() if now - one.heard <= KEEP_S},
            workers={name: worker_of(said) for name, said in fresh.items()},
            sample=sample if now - sample_at <= FRESH_S else {},
            run=run if now - run_at <= FRESH_S else None,
        )


def worker_of(health: Mapping[str, Any]) -> WorkerSnapshot:
    """One worker as its health record says. Raises HistogramError."""
    (lag_ns,) = codec.percentiles_ns(codec.merged([health["lag"]]), [99.0])
    lag_s = None if lag_ns is None else lag_ns / 1e9
    return WorkerSnapshot(health["users"], health["in_flight"], health["cpu_pct"], lag_s)


def endpoint_of(cell: str) -> str:
    """The endpoint's name, with which a cell's begins."""
    return cell.partition("/")[0]


@cache
def lowest_us() -> NDArray[np.float64]:
    """The lowest value that each counter of a ledger's histogram stands for."""
    empty = codec.empty()
    return np.array([empty.get_value_from_index(index) for index in range(empty.counts_len)], np.float64)


@cache
def middles_s() -> NDArray[np.float64]:
    """The middle of the values that each counter stands for."""
    lowest = lowest_us()
    beyond = np.append(lowest[1:], lowest[-1])
    middles: NDArray[np.float64] = (lowest + np.maximum(beyond - 1, lowest)) / 2e6
    return middles


@cache
def ends_of_buckets() -> NDArray[np.int64]:
    """For each bound, the first counter beyond it: its lowest value decides, within 0.1 % of all."""
    return np.searchsorted(lowest_us(), np.array(BOUNDS_S) * 1e6 + 0.5, side="right").astype(np.int64)


def start_exporter(host: str, port: int, live: Live) -> Callable[[], None]:
    """Serve `http://host:port/metrics` until the returned function is called. Raises UsageError."""
    registry = CollectorRegistry()
    registry.register(LiveCollector(live))
    # Compressing would take longer than all the rest, in the process that measures.
    application = guarded(make_wsgi_app(registry, disable_compression=True))
    server = WSGIServer(listener(host, port), application, log=None)
    server.start()
    return lambda: server.stop(timeout=STOP_S)


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


class LiveCollector(Collector):
    """What `live` knows, whenever it is asked."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def collect(self) -> Iterator[Metric]:
        """Every family that has a sample."""
        known = self._live.snapshot()
        for family in (*totals(known), *workers(known), *samples(known)):
            if family.samples:
                yield family


def totals(known: Snapshot) -> Iterator[Metric]:
    """Counters since the process started, and the latencies of successes."""
    outcomes = {"ok": known.ok, "failed": known.failed}
    yield counter(
        "inferswarm_requests",
        "Requests finished, as users saw it",
        (*Series._fields, "outcome"),
        {(*of, outcome): count for outcome, counts in outcomes.items() for of, count in counts.items()},
    )
    yield counter("inferswarm_images", "Images embedded", Series._fields, known.images)
    yield counter("inferswarm_late", "Requests begun more than 5 ms late", Series._fields, known.late)
    yield counter("inferswarm_dropped", "Arrivals never sent", Series._fields, known.dropped)
    yield counter("inferswarm_failures", "Requests that failed", ("endpoint", "kind"), known.failures)
    family = HistogramMetricFamily(
        "inferswarm_latency_seconds", "From a request's intended start to its end", labels=Series._fields
    )
    for of, latency in known.latencies.items():
        family.add_metric(of, buckets(latency), latency.sum_s)
    yield family


def counter(name: str, about: str, labels: Iterable[str], counts: Mapping[Any, float]) -> CounterMetricFamily:
    """A family with a sample for each of `counts`, which are keyed by the labels' values."""
    family = CounterMetricFamily(name, about, labels=tuple(labels))
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


def buckets(latency: Latency) -> list[tuple[str, float]]:
    """(upper bound, how many lie below it), the last for all."""
    return list(zip(BUCKETS, accumulate(latency.counts.tolist()), strict=True))


def gauge(name: str, about: str, label: str, values: Mapping[str, float | None]) -> GaugeMetricFamily:
    """A family with a sample for each value that is known; `label` may be empty, and the key is then too."""
    family = GaugeMetricFamily(name, about, labels=(label,) if label else ())
    for key, value in values.items():
        if value is not None:
            family.add_metric((key,) if label else (), value)
    return family


def workers(known: Snapshot) -> Iterator[Metric]:
    """The load generators, one by one and together."""
    each = known.workers
    users = {"": sum(one.users for one in each.values())} if each else {}
    in_flight = {"": sum(one.in_flight for one in each.values())} if each else {}
    cpu = {name: one.cpu_pct for name, one in each.items()}
    lag = {name: one.lag_p99_s for name, one in each.items()}
    yield gauge("inferswarm_users", "Users of all workers", "", users)
    yield gauge("inferswarm_in_flight", "Requests not yet answered", "", in_flight)
    yield gauge("inferswarm_worker_cpu_percent", "Of one core, in the last second", "worker", cpu)
    yield gauge("inferswarm_worker_lag_p99_seconds", "Lag of the worker's event loop", "worker", lag)


def server_counters(endpoint: str, counters: Mapping[str, int]) -> Iterator[Metric]:
    """The server's own counters: times by part in seconds, and counts of requests, images and executions."""
    parts = {(endpoint, name.removesuffix("_ns")): ns / 1e9 for name, ns in counters.items() if "_ns" in name}
    counts = {(endpoint, name): count for name, count in counters.items() if "_ns" not in name}
    yield counter("inferswarm_server_seconds", "Time in the server, by part", ("endpoint", "part"), parts)
    yield counter("inferswarm_server_count", "What the server counted", ("endpoint", "what"), counts)


def samples(known: Snapshot) -> Iterator[Metric]:
    """What server, GPUs and host said last, and which run is under way."""
    sample = known.sample
    pending = {endpoint_of(sample["cell"]): sample.get("pending_requests")} if sample else {}
    host = {"": sample.get("host", {}).get("cpu_pct")}
    yield from server_counters(endpoint_of(sample["cell"]), sample.get("server", {})) if sample else ()
    yield gauge("inferswarm_pending_requests", "Requests waiting in the server", "endpoint", pending)
    yield gauge("inferswarm_host_cpu_percent", "Of all cores of the master's machine", "", host)
    for key, (name, about) in GPU_GAUGES.items():
        gpus = {gpu["id"]: gpu.get(key) for gpu in sample.get("gpus", ())}
        yield gauge(name, about, "gpu", gpus)
    run = GaugeMetricFamily("inferswarm_run_info", "The run under way", labels=("cell", "repeat", "phase"))
    if known.run is not None:
        run.add_metric([str(value) for value in known.run], 1)
    yield run
