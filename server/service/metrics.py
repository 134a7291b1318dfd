"""The service's Prometheus metrics, in a registry of each app's own."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from server.hardware.nvml import Gpu, read_gpus
from server.settings import Settings

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


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
        self._parts = {part: _seconds_of(part, own) for part in parts}
        self._registry.register(GpuCollector(gpus))

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
        for field in ("utilisation_pct", "memory_used_bytes", "power_w", "sm_clock_mhz", "temperature_c"):
            family = GaugeMetricFamily(f"inferswarm_gpu_{field}", f"GPU {field}", labels=["gpu"])
            for gpu in gpus:
                if (value := getattr(gpu, field)) is not None:
                    family.add_metric([str(gpu.index)], value)
            if family.samples:
                yield family


def _seconds_of(part: str, registry: CollectorRegistry) -> Histogram:
    name = f"inferswarm_{part}_seconds"
    return Histogram(name, f"Seconds of {part} per request", buckets=SECONDS, registry=registry)
