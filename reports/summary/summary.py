"""One run's numbers, the way and the variant that it is of, and in which order a reader meets them."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from reports.backend_facts import NO_FACTS, BackendFacts
from reports.caveat import Caveat
from reports.fold.health import ClientCpu, ClientHealth
from reports.fold.path import Path
from reports.fold.samples import Cost, OthersUse
from reports.fold.server import ServerSide
from reports.fold.server_facts import Memory, ServerCpu, Serving, Trace
from reports.fold.windows import Arrivals, ClientPhases, RequestCounts
from reports.fold.workers import WorkerShare
from reports.histogram.percentiles import Distribution
from reports.ledger.axes import Axes, think_s
from reports.limit import Limit
from reports.machines.gpus import Gpus, GpuUse
from reports.summary.classes import ClassFigures
from reports.summary.goodput import Goodput


class Way(NamedTuple):
    """An endpoint with a variant such as `shared/4w`, which is empty where the study varies nothing."""

    endpoint: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint} {self.variant}".rstrip()


@dataclass(frozen=True, kw_only=True)
class CellFields:
    """What tells a cell from others: of a run, of a row of cells.csv, of a published figure.

    Last what older ledgers and files do not tell: what requests call the model, or its server does; the
    codec; the server, which endpoints that have the same share; and the space of the vectors.
    """

    endpoint: str
    backend: str
    protocol: str
    payload: str
    batch: int
    load: str
    level: float
    model: str = ""
    codec: str = ""
    shares: str = ""
    space: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary(CellFields, Axes):
    """One cell and repeat: what was planned of it, then in parts what came of it.

    `status` is done, aborted, failed, unfinished or not-run. `facts` are of its backend. `level` is users in
    closed-loop load; in open-loop load it is the asked arrivals per second. Its axes are as planned, such as
    `topology`; `workers` and `hosts` are those that were there, `places` the host of each worker. `stages` is
    a `profile` as name, seconds, first and last rate or users of each: `level` is then its peak. `confirming`
    is a run that is to confirm the rate that a search found. `link_bytes_per_s` is the rate of the emulated
    `link`, or without one the rate that --link-mbit gave.

    `latency`, `service` and `send_delay` are of successes, `failed` and `timeout` of requests that failed.
    Phases, `network_ns`, `unexplained_ns` and the server's parts are means per request, which
    docs/attribution.md defines: `network_ns` is what is proven; it may be as much as `network_most_ns`, and
    the difference counts as unexplained. `client_cpu` is what one request cost all workers. Of the master's
    machine are `host_cpu_pct`, `host_cores` and `others_cpu`, what other processes took; `gpu` is of as many
    `gpus` as were sampled. `shed` are requests that the server itself counted as refused.
    """

    cell: str
    repeat: int
    status: str
    facts: BackendFacts = NO_FACTS
    stages: tuple[tuple[Any, ...], ...] = ()
    confirming: bool = False
    link_bytes_per_s: float | None = None
    workers: int | None = None
    hosts: int | None = None
    places: tuple[str, ...] = ()
    counts: RequestCounts = field(default_factory=RequestCounts)
    sent: Arrivals = field(default_factory=Arrivals)
    goodput: Goodput = field(default_factory=Goodput)
    latency: Distribution = field(default_factory=Distribution)
    service: Distribution = field(default_factory=Distribution)
    send_delay: Distribution = field(default_factory=Distribution)
    failed: Distribution = field(default_factory=Distribution)
    timeout: Distribution = field(default_factory=Distribution)
    phases: ClientPhases = field(default_factory=ClientPhases)
    server: ServerSide = field(default_factory=ServerSide)
    serving: Serving | None = None
    trace: Trace | None = None
    memory: Memory | None = None
    server_cpu: ServerCpu = field(default_factory=ServerCpu)
    path: Path | None = None
    shed: int | None = None
    network_ns: float | None = None
    network_most_ns: float | None = None
    unexplained_ns: float | None = None
    generator: ClientHealth = field(default_factory=ClientHealth)
    client_cpu: ClientCpu = field(default_factory=ClientCpu)
    per_worker: tuple[WorkerShare, ...] = ()
    classes: tuple[ClassFigures, ...] = ()
    host_cpu_pct: float | None = None
    host_cores: int | None = None
    others_cpu: OthersUse | None = None
    gpu: Gpus = field(default_factory=Gpus)
    gpus: int | None = None
    each_gpu: tuple[GpuUse, ...] = ()
    local: bool | None = None
    cost: Cost = field(default_factory=Cost)
    limit: Limit | None = None
    caveats: tuple[Caveat, ...] = ()

    @property
    def started(self) -> bool:
        """Whether this run was begun at all."""
        return self.status != "not-run"

    @property
    def stand_in(self) -> str:
        """The sentence that must stand beside its numbers, or nothing."""
        return self.facts.stand_in

    @property
    def way(self) -> Way:
        """How it reached the model: runs of different ways are never counted as one."""
        return Way(self.endpoint, self.variant)

    @property
    def is_floor(self) -> bool:
        """Whether no model stood behind it: such a run is shown beside others and ranked with none."""
        return self.facts.floor

    @property
    def succeeded(self) -> int:
        """Requests that came back right."""
        return self.counts.succeeded

    @property
    def tcp_connections(self) -> int | None:
        """The most TCP connections to the server that the kernel saw at once."""
        return self.path.connections if self.path else None

    @property
    def built_anew(self) -> bool:
        """Whether each request was made while measuring, by the client library."""
        return self.client == "library"

    @property
    def timeouts(self) -> int:
        """Requests that failed because they took too long."""
        return self.counts.failure_kinds.get("timeout", 0)

    @property
    def closed(self) -> bool:
        """Whether so many users as `level` says were there all the time."""
        return self.load == "closed" and not self.profile

    @property
    def serial(self) -> bool:
        """Whether one user sent one request after the other."""
        return self.closed and self.level == 1

    @property
    def think_s(self) -> float:
        """How long a user waited after an answer, on average, because it was asked to."""
        return think_s(self.think)

    @property
    def tainted(self) -> bool:
        """Whether any caveat invalidates these numbers."""
        return any(caveat.tainted for caveat in self.caveats)


def codes(run: Summary, separator: str = ", ") -> str:
    """The codes of a run's caveats, each once."""
    return separator.join(dict.fromkeys(caveat.code for caveat in run.caveats))


def tainting(run: Summary) -> set[str]:
    """The codes of what invalidates a run."""
    return {caveat.code for caveat in run.caveats if caveat.tainted}


@dataclass(frozen=True)
class LatencyAt:
    """A run's latency at a percentile, p50, p90, p95, p99 or p99.9, in ms; None of too few results.

    What reports show of several runs is that of all their requests together: `reports.stats.percentiles`.
    """

    percentile: str

    def __call__(self, run: Summary) -> float | None:
        """That of one run."""
        value_ns: float | None = getattr(run.latency, f"{self.percentile.replace('.', '')}_ns")
        return None if value_ns is None else value_ns / 1e6


PARTS = {
    "send_delay": "send_delay.mean_ns",
    "resolve": "phases.resolve_ns",
    "connect": "phases.handshake_ns",
    "encode": "phases.encode_ns",
    "stream_wait": "phases.stream_wait_ns",
    "flow_wait": "phases.flow_wait_ns",
    "send": "phases.send_ns",
    "network": "network_ns",
    "server_queue": "server.queue_ns",
    "server_compute": "server.compute_ns",
    "server_other": "server.other_ns",
    "receive": "phases.receive_ns",
    "decode": "phases.decode_ns",
    "unexplained": "unexplained_ns",
}
"""The parts in the order of the sum, and where a Summary has each."""
LEFT_OVER = ("network", "unexplained")
UNCLEAR = "unclear"
"""The name of what is network or unexplained, in a sum that shows the two apart."""


@dataclass(frozen=True)
class Part:
    """One part of the mean latency and its share of it; None where it was not measured."""

    name: str
    ns: float | None
    share: float | None


def parts_of(run: Summary) -> list[Part]:
    """Every part in the order of the sum; those that are known add up to the mean latency."""
    found: list[tuple[str, float | None]] = [(name, attrgetter(path)(run)) for name, path in PARTS.items()]
    return [_part(run, name, ns) for name, ns in found]


def shown_parts_of(run: Summary) -> list[Part]:
    """The same sum with what is unexplained in two: `unclear`, which may be the network's, and the rest."""
    *parts, unexplained = parts_of(run)
    unclear_ns = unclear(run)
    if unclear_ns is None or unexplained.ns is None:
        return [*parts, _part(run, UNCLEAR, None), unexplained]
    rest_ns = unexplained.ns - unclear_ns
    return [*parts, _part(run, UNCLEAR, unclear_ns), _part(run, unexplained.name, rest_ns)]


def unclear(run: Summary) -> float | None:
    """What may be the network's beyond what is proven of it, in ns; None where the path is not known."""
    if run.network_ns is None or run.network_most_ns is None:
        return None
    return run.network_most_ns - run.network_ns


def _part(run: Summary, name: str, ns: float | None) -> Part:
    whole_ns = run.latency.mean_ns
    return Part(name, ns, ns / whole_ns if ns is not None and whole_ns else None)


def mean_in_flight(run: Summary) -> float | None:
    """By Little's law, which is exact over a phase; looks at each second's end are few and by chance."""
    if run.service.mean_ns is None or not run.counts.measure_ns:
        return run.generator.in_flight
    return run.service.mean_ns * run.succeeded / run.counts.measure_ns


def users_busy(run: Summary) -> float | None:
    """The share of their time that closed-loop users waited for answers or thought: X (R + Z) / N.

    None where requests failed, whose time is not known by user, and where a figure of it is unknown. Source:
    the response time law of P. J. Denning and J. P. Buzen, The operational analysis of queueing network
    models, ACM Computing Surveys 10 (1978).
    """
    if not run.closed or run.counts.failures or not run.counts.measure_ns:
        return None
    in_flight = mean_in_flight(run)
    thinking = run.think_s * 1e9 * run.succeeded / run.counts.measure_ns
    return None if in_flight is None or run.service.mean_ns is None else (in_flight + thinking) / run.level
