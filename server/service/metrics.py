"""The service's Prometheus metrics, in a registry of each app's own."""

import platform
import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from server.hardware.nvml import Gpu, read_gpus
from server.hardware.taken_cpu import Quotas, host_cpu_s
from server.settings import Settings

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

GPU_FIELDS = (
    *("utilisation_pct", "memory_used_bytes", "memory_total_bytes", "power_w", "power_limit_w", "energy_j"),
    *("sm_clock_mhz", "max_sm_clock_mhz", "throttle_reasons", "temperature_c", "serves"),
)
"""What is told of each GPU; `serves`: 1 where this service computes on it, 0 where on others."""


class Metrics:
    """What the service counts: requests by their end, images embedded, and each of `parts` in seconds."""

    def __init__(
        self, gpus: Callable[[], list[Gpu]] = read_gpus, parts: Sequence[str] = Settings().parts
    ) -> None:
        self._registry = own = CollectorRegistry()
        # First on the page: what comes while that is written is in `requests` alone.
        self.in_flight = Gauge("inferswarm_in_flight", "Requests to /embed not yet answered", registry=own)
        self.requests = Counter("inferswarm_requests", "Requests to /embed, including failures", registry=own)
        self.failures = Counter("inferswarm_failures", "Requests to /embed that failed", registry=own)
        self.shed = Counter("inferswarm_shed", "Requests refused with 429, including /null", registry=own)
        self.images = Counter("inferswarm_images", "Images embedded", registry=own)
        started = Gauge("inferswarm_started_seconds", "When this process started", ("host",), registry=own)
        started.labels(platform.node()).set(time.time())
        self._parts = {part: _seconds_of(part, own) for part in parts}
        self._registry.register(GpuCollector(gpus))
        self._registry.register(CpuCollector())

    def succeeded(self, images: int, parts_ns: dict[str, int]) -> None:
        """Count one answered request: its images and the nanoseconds of its parts."""
        self.images.inc(images)
        for part, duration_ns in parts_ns.items():
            self._parts[part].observe(duration_ns / 1e9)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class GpuCollector(Collector):
    """GPU gauges, read when they are scraped; none where there is no GPU."""

    def __init__(self, gpus: Callable[[], list[Gpu]]) -> None:
        self._gpus = gpus

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family for each measure, one sample for each GPU."""
        gpus = self._gpus()
        for field in GPU_FIELDS:
            family = GaugeMetricFamily(f"inferswarm_gpu_{field}", f"GPU {field}", labels=["gpu", "uuid"])
            for gpu in gpus:
                if (value := getattr(gpu, field)) is not None:
                    family.add_metric([str(gpu.index), gpu.uuid], value)
            if family.samples:
                yield family


class CpuCollector(Collector):
    """Processor time that was taken from the service, read when it is scraped; what is untold is left out."""

    def __init__(
        self,
        quotas: Quotas | None = None,
        host: Callable[[], tuple[float, float] | None] = host_cpu_s,
    ) -> None:
        self._quotas, self._host = quotas or Quotas(), host

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """The cgroup's quota and for how long it was stopped; what the host wanted, and what was stolen."""
        stopped_s, used_up_s = (ns / 1e9 for ns in self._quotas.take())
        if (cores := self._quotas.cores) is not None:
            yield GaugeMetricFamily("inferswarm_cpu_quota_cores", "Cores that the cgroup allows", value=cores)
            about = "Time in which the cgroup was stopped by its quota"
            yield CounterMetricFamily("inferswarm_cpu_throttled_seconds", about, value=stopped_s)
            about = "Time of the quota's periods in which it ran out"
            yield CounterMetricFamily("inferswarm_cpu_used_up_seconds", about, value=used_up_s)
        if (found := self._host()) is not None:
            wanted_s, stolen_s = found
            about = "Time for which the host's processors were wanted, summed over them"
            yield CounterMetricFamily("inferswarm_cpu_wanted_seconds", about, value=wanted_s)
            about = "Time of that which a hypervisor gave to others"
            yield CounterMetricFamily("inferswarm_cpu_stolen_seconds", about, value=stolen_s)


def _seconds_of(part: str, registry: CollectorRegistry) -> Histogram:
    name = f"inferswarm_{part}_seconds"
    return Histogram(name, f"Seconds of {part} per request", buckets=SECONDS, registry=registry)
