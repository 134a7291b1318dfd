"""Live figures for Prometheus, on a port of the master: made when scraped, from what is known by then."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from gevent import socket
from gevent.pywsgi import WSGIServer
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from swarm.errors import UsageError
from swarm.output.allowed_hosts import guarded
from swarm.output.prometheus import BOUNDS_S, Latency, Live, Series, Snapshot, endpoint_of

STOP_S = 1.0
BUCKETS = (*map(str, BOUNDS_S), "+Inf")
GPU_GAUGES = {
    "util_pct": ("inferswarm_gpu_utilization_percent", "Share of the time in which the GPU computed"),
    "memory_bytes": ("inferswarm_gpu_memory_bytes", "GPU memory in use"),
    "power_w": ("inferswarm_gpu_power_watts", "What the GPU draws"),
    "sm_clock_mhz": ("inferswarm_gpu_sm_clock_mhz", "Clock of the GPU's multiprocessors"),
}


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
