"""One run's numbers, the way and the variant that it is of, and in which order a reader meets them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reports.caveat import Caveat
from reports.fold.path import Path
from reports.fold.server import Serving
from reports.fold.server_facts import Memory, Trace
from reports.fold.workers import WorkerShare
from reports.ledger.axes import Axes
from reports.limit import Limit

FLOOR_SUFFIX = "-floor"
"""Of the endpoint that is another's twin with no model behind it."""


class Way(NamedTuple):
    """An endpoint with a variant such as `shared/4w`, which is empty where the study varies nothing."""

    endpoint: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint} {self.variant}".rstrip()


@dataclass(frozen=True, kw_only=True)
class CellFields:
    """What tells a cell from others: of a run, of a row of cells.csv, of a published figure."""

    endpoint: str
    backend: str
    protocol: str
    payload: str
    batch: int
    load: str
    level: float


@dataclass(frozen=True, kw_only=True)
class Summary(CellFields, Axes):
    """One cell and repeat: counts, rates of successes, percentiles of successes, means per request.

    Times are nanoseconds; None stands where nothing was measured. Names are those of cells.csv, which writes
    `_ns` as milliseconds. `status` is done, aborted, failed, unfinished or not-run.

    `level` is users in closed load. In open load it is the asked arrivals per second, `offered_per_s` what
    was sent, `due` are the arrivals whose time came, `dropped` those of them that were never sent. `late` are
    requests that began more than 5 ms after their time.
    The generator's own figures, from `worker_cpu_pct` to `gc_max_ns`, are each of the worst worker, as
    reports.fold.health defines them; `in_flight` is of all. `client_cpu_ns` is what one of `requests` cost
    all workers together, and `client_cpu_doubts` says where that is coarse or mostly fixed work.
    `loop_lag_p95_ns` is of `lag_worker`.

    The phases from `encode_ns` to `decode_ns` and the server's parts are means per request, `server_parts`
    by their names; docs/attribution.md defines `network_ns` and `unexplained_ns`. `server_busy` is the share
    of its instances' time that the server spent executing, `cold_share` the part of that time that went into
    first executions of the batch sizes `cold_batches`. `link_bytes_per_s` is the rate of the emulated `link`,
    or without one the rate that --link-mbit gave. `gpus` is how many were sampled; `images_per_usd` goes by
    the price that --usd-per-hour gave, `joules_per_image` by their power, idle included.

    Its axes are as planned, such as `topology`; `workers` and `hosts` are those that were there. `stages` is
    the `profile` of an open load as name, seconds, first and last rate of each: `level` is then its peak.
    """

    cell: str
    repeat: int
    status: str
    workers: int | None = None
    hosts: int | None = None
    requests: int | None = None
    failures: int | None = None
    abandoned: int | None = None
    images: int | None = None
    measure_ns: float | None = None
    requests_per_s: float | None = None
    images_per_s: float | None = None
    offered_per_s: float | None = None
    late: int | None = None
    due: int | None = None
    dropped: int | None = None
    stages: tuple[tuple[Any, ...], ...] = ()
    tcp_asked: int | None = None
    tcp_connections: int | None = None
    latency_mean_ns: float | None = None
    latency_p50_ns: float | None = None
    latency_p90_ns: float | None = None
    latency_p95_ns: float | None = None
    latency_p99_ns: float | None = None
    latency_p999_ns: float | None = None
    latency_max_ns: float | None = None
    service_mean_ns: float | None = None
    service_p50_ns: float | None = None
    service_p95_ns: float | None = None
    service_p99_ns: float | None = None
    failed_p50_ns: float | None = None
    timeout_p50_ns: float | None = None
    send_delay_mean_ns: float | None = None
    send_delay_p95_ns: float | None = None
    send_delay_p99_ns: float | None = None
    encode_ns: float | None = None
    send_ns: float | None = None
    wait_ns: float | None = None
    receive_ns: float | None = None
    decode_ns: float | None = None
    server_ns: float | None = None
    server_queue_ns: float | None = None
    server_compute_ns: float | None = None
    server_other_ns: float | None = None
    server_parts: Mapping[str, float] = field(default_factory=dict)
    server_busy: float | None = None
    cold_share: float | None = None
    cold_batches: tuple[int, ...] = ()
    network_ns: float | None = None
    unexplained_ns: float | None = None
    request_bytes: float | None = None
    response_bytes: float | None = None
    executed_batch: float | None = None
    client_cpu_ns: float | None = None
    client_cpu_doubts: tuple[str, ...] = ()
    worker_cpu_pct: float | None = None
    loop_cpu_pct: float | None = None
    cpu_wait_pct: float | None = None
    awake_pct: float | None = None
    loop_delay_ns: float | None = None
    host_cpu_pct: float | None = None
    loop_lag_p95_ns: float | None = None
    loop_lag_p99_ns: float | None = None
    lag_worker: str = ""
    gc_max_ns: int | None = None
    in_flight: float | None = None
    gpu_util_pct: float | None = None
    gpu_memory_bytes: float | None = None
    gpu_power_w: float | None = None
    gpus: int | None = None
    images_per_usd: float | None = None
    joules_per_image: float | None = None
    link_bytes_per_s: float | None = None
    path: Path | None = None
    serving: Serving | None = None
    trace: Trace | None = None
    memory: Memory | None = None
    limit: Limit | None = None
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    per_worker: tuple[WorkerShare, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    @property
    def shared_share(self) -> float | None:
        """The share of requests that had no execution of their own: 1 − executions ÷ requests, 0 at least.

        By Triton's counts of images and executions; None where they are not known.
        """
        return max(0.0, 1 - self.batch / self.executed_batch) if self.executed_batch else None

    @property
    def started(self) -> bool:
        """Whether this run was begun at all."""
        return self.status != "not-run"

    @property
    def way(self) -> Way:
        """How it reached the model: runs of different ways are never counted as one."""
        return Way(self.endpoint, self.variant)

    @property
    def is_floor(self) -> bool:
        """Whether no model stood behind it: such a run is shown beside others and ranked with none."""
        return self.endpoint.endswith(FLOOR_SUFFIX)

    @property
    def succeeded(self) -> int:
        """Requests that came back right."""
        return (self.requests or 0) - (self.failures or 0)

    @property
    def built_anew(self) -> bool:
        """Whether each request was made while measuring, by the client library."""
        return self.client == "library"

    @property
    def timeouts(self) -> int:
        """Requests that failed because they took too long."""
        return self.failure_kinds.get("timeout", 0)

    @property
    def serial(self) -> bool:
        """Whether one user sent one request after the other."""
        return self.load == "closed" and self.level == 1

    @property
    def server_resident_bytes(self) -> int | None:
        """What its server held in memory after the measure phase, of one that was started with the study."""
        return self.memory.after.resident_bytes if self.memory and self.memory.after else None

    @property
    def tainted(self) -> bool:
        """Whether any caveat disqualifies these numbers."""
        return any(caveat.tainted for caveat in self.caveats)


def codes(run: Summary, separator: str = ", ") -> str:
    """The codes of a run's caveats, each once."""
    return separator.join(dict.fromkeys(caveat.code for caveat in run.caveats))


def tainting(run: Summary) -> set[str]:
    """The codes of what disqualifies a run."""
    return {caveat.code for caveat in run.caveats if caveat.tainted}


def percentile_ms(run: Summary, percentile: str) -> float | None:
    """Latency at p50, p90, p95, p99 or p99.9 in milliseconds."""
    value_ns: float | None = getattr(run, f"latency_{percentile.replace('.', '')}_ns")
    return None if value_ns is None else value_ns / 1e6
