"""What is told to monitoring tools: every metric with its kind, labels and meaning, described once.

From this are made the families that exporters tell, the table in docs/exporters.md, and the queries of the
dashboard in examples/grafana/. Names keep Prometheus' practice: base units, `_total` for counters, `_ratio`
for shares of 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

RUN = ("endpoint", "cell", "phase")
"""What the totals of requests are counted by; repeats of a cell add up."""
FAMILIES: Mapping[str, Callable[..., Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


@dataclass(frozen=True)
class DescribedMetric:
    """A metric: its name, with its unit; counter, gauge or histogram; its help; the names of its labels.

    `field` is where its value stands in what an event tells, and `scale` how many of the metric's units make
    one of the field's.
    """

    name: str
    kind: str
    about: str
    labels: tuple[str, ...] = ()
    field: str = ""
    scale: float = 1.0

    def family(self, values: Mapping[Any, float | None]) -> Metric:
        """With a sample for each value that is known; they are keyed by the labels' values."""
        family: Any = FAMILIES[self.kind](self.name, self.about, labels=self.labels)
        for key, value in values.items():
            if value is not None:
                family.add_metric(key, value * self.scale)
        made: Metric = family
        return made

    def of(self, told: Any) -> float | None:
        """Its value in what an event tells, as the event has it: an object or a mapping."""
        value: float | None = told.get(self.field) if isinstance(told, Mapping) else getattr(told, self.field)
        return value


def counter(
    name: str, about: str, labels: tuple[str, ...], field: str = "", scale: float = 1
) -> DescribedMetric:
    """What only grows, since the process started."""
    return DescribedMetric(name, "counter", about, labels, field, scale)


def gauge(
    name: str, about: str, labels: tuple[str, ...] = (), field: str = "", scale: float = 1
) -> DescribedMetric:
    """What holds now."""
    return DescribedMetric(name, "gauge", about, labels, field, scale)


def of_gpu(name: str, about: str, field: str, scale: float = 1) -> DescribedMetric:
    """What holds now of each GPU."""
    return gauge(f"inferswarm_gpu_{name}", about, ("gpu",), field, scale)


REQUESTS = counter("inferswarm_requests_total", "Requests finished, as users saw it", (*RUN, "outcome"))
IMAGES = counter("inferswarm_images_total", "Images embedded", RUN, "images")
GOOD = counter("inferswarm_good_total", "Requests that succeeded within the limit of --slo", RUN, "good")
LATE = counter("inferswarm_late_total", "Requests started more than 5 ms late", RUN, "late")
DROPPED = counter("inferswarm_dropped_total", "Arrivals never sent", RUN, "dropped")
FAILURES = counter("inferswarm_failures_total", "Requests that failed", ("endpoint", "kind"))
LATENCY = DescribedMetric(
    "inferswarm_latency_seconds", "histogram", "From a request's intended start to its end, of successes", RUN
)
USERS = gauge("inferswarm_users", "Users on all workers", field="users")
IN_FLIGHT = gauge("inferswarm_in_flight", "Requests not yet answered", field="in_flight")
WORKER_CPU = gauge(
    "inferswarm_worker_cpu_ratio",
    "CPU of a worker, in cores, in the last second",
    ("worker",),
    "cpu_pct",
    0.01,
)
WORKER_LAG = gauge(
    "inferswarm_worker_lag_p99_seconds",
    "Lag of the worker's event loop",
    ("worker",),
    "loop_lag_p99_ns",
    1e-9,
)
SERVER_TIME = counter("inferswarm_server_seconds_total", "Time in the server, by part", ("endpoint", "part"))
SERVER_COUNT = counter("inferswarm_server_count_total", "What the server counted", ("endpoint", "what"))
PENDING = gauge(
    "inferswarm_pending_requests", "Requests waiting in the server", ("endpoint",), "pending_requests"
)
INSTANCES = gauge(
    "inferswarm_server_instances", "Executions of the model that can run at once", ("cell",), "instances"
)
MAX_BATCH = gauge("inferswarm_server_max_batch", "Most images in one execution", ("cell",), "max_batch")
QUEUE_DELAY = gauge(
    "inferswarm_server_queue_delay_seconds", "How long a request may wait for a batch", ("cell",),
    "batching_delay_ns", 1e-9,
)  # fmt: skip
REPLICAS = gauge("inferswarm_replicas", "Replicas of the server, by state", ("endpoint", "state"))
HOST_CPU = gauge(
    "inferswarm_host_cpu_ratio", "CPU of the master's machine, of all cores", (), "host_cpu_pct", 0.01
)
HOST_SENT = gauge(
    "inferswarm_host_sent_bytes_per_second", "Sent by the master's machine", (), "tx_bytes_per_s"
)
HOST_RECEIVED = gauge(
    "inferswarm_host_received_bytes_per_second", "Received by the master's machine", (), "rx_bytes_per_s"
)
GPU_UTIL = of_gpu("utilization_ratio", "Share of the time in which a kernel ran", "util_pct", 0.01)
GPU_SM = of_gpu("sm_active_ratio", "Share of the multiprocessors that had work (DCGM)", "sm_active_pct", 0.01)
GPU_MEMORY = of_gpu("memory_bytes", "GPU memory in use", "memory_bytes")
GPU_MEMORY_SIZE = of_gpu("memory_size_bytes", "GPU memory there is", "memory_total_bytes")
GPU_POWER = of_gpu("power_watts", "GPU power draw", "power_w")
GPU_POWER_LIMIT = of_gpu("power_limit_watts", "What the GPU's power is limited to", "power_limit_w")
GPU_ENERGY = counter(
    "inferswarm_gpu_energy_joules_total",
    "Energy the GPU has taken since its driver started",
    ("gpu",),
    "energy_j",
)
GPU_CLOCK = of_gpu("sm_clock_hertz", "Clock of the GPU's multiprocessors", "sm_clock_mhz", 1e6)
GPU_MAX_CLOCK = of_gpu("max_sm_clock_hertz", "The fastest that clock can be", "max_sm_clock_mhz", 1e6)
GPU_HELD = gauge(
    "inferswarm_gpu_clock_held", "1 where this holds the GPU's clocks down, else 0", ("gpu", "reason")
)
PCIE_SENT = of_gpu("pcie_sent_bytes_per_second", "Sent by the GPU over PCIe", "pcie_tx_bytes_per_s")
PCIE_RECEIVED = of_gpu(
    "pcie_received_bytes_per_second", "Received by the GPU over PCIe", "pcie_rx_bytes_per_s"
)
RUN_INFO = gauge("inferswarm_run_info", "The current run", ("cell", "repeat", "phase"))

COUNTED = (IMAGES, GOOD, LATE, DROPPED)
"""Counters by RUN alone."""
STANDING = (USERS, IN_FLIGHT)
"""Sums over workers."""
OF_WORKERS = (WORKER_CPU, WORKER_LAG)
OF_SERVING = (INSTANCES, MAX_BATCH, QUEUE_DELAY)
"""How the server is set for a run."""
OF_HOST = (HOST_CPU, HOST_SENT, HOST_RECEIVED)
OF_GPUS = (
    *(GPU_UTIL, GPU_SM, GPU_MEMORY, GPU_MEMORY_SIZE, GPU_POWER, GPU_POWER_LIMIT, GPU_ENERGY),
    *(GPU_CLOCK, GPU_MAX_CLOCK, PCIE_SENT, PCIE_RECEIVED),
)
METRICS = tuple(one for one in [*vars().values()] if isinstance(one, DescribedMetric))
"""All of them, in order."""
