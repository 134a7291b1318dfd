"""What is known of a run's server: its set-up, memory, processors and operators, and Triton's own trace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.health import SECOND_NS, stealable_ns
from reports.histogram.percentiles import told_percentiles_ns
from reports.ledger.ledger import Record

CPU = "CPUExecutionProvider"
PARTS = ("receive", "queue", "input", "compute", "output", "send", "server", "outside")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Instances, largest batch, whether requests are batched, how long they wait for it; None if untold.

    `steps` has the instances of each model of an ensemble.
    """

    instances: int | None = None
    max_batch: int | None = None
    batching: bool | None = None
    batching_delay_ns: int | None = None
    steps: Mapping[str, int | None] | None = None


def serving_of(records: Sequence[Record]) -> Serving | None:
    """What the last `serving` record of a run told; None where there is none or it could not be told."""
    if not records or "error" in records[-1]:
        return None
    told = records[-1]
    return Serving(**{name: told.get(name) for name in Serving.__dataclass_fields__})


def serving_gap(records: Sequence[Record]) -> Iterator[Caveat]:
    """The caveat of a server that was asked for its set-up and did not tell."""
    if records and "error" in records[-1]:
        yield caveat("probe-gap", f"how the server is set up is not known: {records[-1]['error']}")


@dataclass(frozen=True, kw_only=True)
class MemoryReading:
    """One reading over all of a server's processes, in bytes; None where kernel or driver did not tell.

    `how` is pss, where what processes share is divided among them, or rss, where each counts all of it.
    `gpu_memory_bytes` is of these processes alone.
    """

    resident_bytes: int
    processes: int
    how: str
    anonymous_bytes: int | None = None
    file_bytes: int | None = None
    shared_bytes: int | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True)
class Memory:
    """The server's name and both readings; None where one was not made."""

    server: str
    before: MemoryReading | None
    after: MemoryReading | None


def memory_of(records: Sequence[Record]) -> Memory | None:
    """From the `memory` records of a run; None without any, as where the server was not started here."""
    by_when = {record["when"]: _held(record) for record in records}
    before, after = by_when.get("before"), by_when.get("after")
    return Memory(records[-1]["server"], before, after) if before or after else None


def _held(record: Record) -> MemoryReading:
    return MemoryReading(
        **{name: record[name] for name in MemoryReading.__dataclass_fields__ if name in record}
    )


@dataclass(frozen=True, kw_only=True)
class ServerCpu:
    """Processor time that a server wanted in the measure phase and did not get; None where untold.

    `throttled_pct` is the share of time in which its cgroup was stopped, which allows `quota` cores,
    `used_up_pct` that of the periods in which this ran out, and `shared` whether the master's process is in
    that cgroup, too. `stolen_pct` is the share that a hypervisor took of the time for which the processors of
    its host were wanted.
    """

    quota: float | None = None
    throttled_pct: float | None = None
    used_up_pct: float | None = None
    shared: bool = False
    stolen_pct: float | None = None


LEAST_COUNTED_S = 2
"""Between two readings of a second's grain, that a share is taken by."""
TAKEN = ("throttled_ns", "used_up_ns", "stolen_ns", "wanted_ns")


class CpuReadings:
    """The first and the last of a phase's readings `server_cpu`, whose times are sums since some start."""

    def __init__(self) -> None:
        self._ends = list[tuple[int, Mapping[str, Any]]]()
        self._fell = False
        """Whether a sum fell, as where the server began anew, or another process told it."""
        self._who: str | None = None

    def add(self, second: int, told: Mapping[str, Any], who: str = "") -> None:
        """Takes in the reading at a second's end; `who` is the process that told it, where it says so."""
        self._fell |= self._who not in (None, who)
        self._who = who
        if self._ends:
            before = self._ends[-1][1]
            both = [(before[name], told[name]) for name in TAKEN if name in before and name in told]
            self._fell |= any(later < earlier for earlier, later in both)
        self._ends = [*self._ends[:1], (second, told)]

    @property
    def found(self) -> ServerCpu:
        """What it comes to; nothing where sums fell, or two readings are too near to each other."""
        if self._fell or len(self._ends) < 2:
            return ServerCpu()
        (began, first), (ended, last) = self._ends
        if ended - began < LEAST_COUNTED_S:
            return ServerCpu()
        span_ns = (ended - began) * SECOND_NS
        grown = {name: last[name] - (first.get(name) or 0) for name in TAKEN if last.get(name) is not None}
        stolen_ns = grown.get("stolen_ns")
        wanted_ns = stealable_ns(grown.get("wanted_ns", 0), span_ns)
        return ServerCpu(
            quota=last.get("quota"),
            throttled_pct=_share_pct(grown.get("throttled_ns"), span_ns),
            used_up_pct=_share_pct(grown.get("used_up_ns"), span_ns),
            shared=bool(last.get("shared")),
            stolen_pct=None if stolen_ns is None else 100 * stolen_ns / wanted_ns,
        )


def shed_of(readings: Sequence[Record]) -> int | None:
    """Requests that the server counted as refused in the measure phase; None where it does not count them."""
    counted = {one["when"]: (one.get("counters") or {}).get("shed") for one in readings}
    before, after = counted.get("before"), counted.get("after")
    return after - before if before is not None and after is not None and after >= before else None


def _share_pct(part_ns: float | None, span_ns: int) -> float | None:
    """At most all of the time: readings may come some tenths of a second late."""
    return None if part_ns is None else min(100.0, 100 * part_ns / span_ns)


@dataclass(frozen=True)
class Operator:
    """One type of operator: nodes that ran, its part of an inference, its share of all operators' time."""

    name: str
    nodes: int
    time_ns: float
    share: float


@dataclass(frozen=True)
class Timed:
    """Inferences of so many images, without the profiler."""

    batch: int
    iterations: int
    mean_ns: float
    min_ns: float
    max_ns: float


@dataclass(frozen=True, kw_only=True)
class OperatorProfile:
    """As `inferswarm profile` told it; `error` says why there is none, and all else is empty then.

    `file_nodes` are those in the file, `executed_nodes` those that ran once ONNX Runtime had fused some.
    `providers` has nodes by who ran them, `fallbacks` operators by name that ran on the processor though
    another provider was `asked` for first. `session_ns` are creations, one after the other.
    """

    error: str = ""
    onnxruntime: str = ""
    batch: int = 0
    inferences: int = 0
    inference_ns: float = 0.0
    operators: tuple[Operator, ...] = ()
    timed: tuple[Timed, ...] = ()
    file_bytes: int = 0
    file_nodes: int = 0
    executed_nodes: int = 0
    opset: int = 0
    session_ns: tuple[float, ...] = ()
    asked: tuple[str, ...] = (CPU,)
    providers: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)


def operator_profile(records: Sequence[Record]) -> OperatorProfile | None:
    """The last of the `operators` records; None without any."""
    return _profile(records[-1]) if records else None


def _profile(record: Record) -> OperatorProfile:
    if "error" in record:
        return OperatorProfile(error=str(record["error"]))
    plain: dict[str, Any] = {
        name: record[name]
        for name in (
            *("onnxruntime", "batch", "inferences", "inference_ns"),
            *("file_bytes", "file_nodes", "executed_nodes", "opset"),
        )
    }
    return OperatorProfile(
        **plain,
        operators=tuple(
            Operator(str(one["operator"]), int(one["nodes"]), float(one["time_ns"]), float(one["share"]))
            for one in record["operators"]
        ),
        timed=tuple(Timed(**one) for one in record["latencies"]),
        session_ns=tuple(map(float, record["session_ns"])),
        asked=tuple(map(str, record["asked"])),
        providers={str(name): int(count) for name, count in record["providers"].items()},
        fallbacks={str(one["operator"]): int(one["nodes"]) for one in record["fallbacks"]},
    )


@dataclass(frozen=True)
class Percentiles:
    """Of one part, over the requests that were found in the trace; None where those are too few for one."""

    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None


@dataclass(frozen=True)
class Trace:
    """How many requests could be in the trace, how many were found, and the parts that it has of them."""

    requests: int
    joined: int
    parts: Mapping[str, Percentiles]


def trace_of(records: Sequence[Record]) -> Trace | None:
    """From the last `trace` record of a run; None where there is none."""
    if not records:
        return None
    told = records[-1]
    found = {name: told["histograms"][name] for name in PARTS if name in told["histograms"]}
    parts = {
        name: Percentiles(*told_percentiles_ns(buckets, (50, 95, 99)))
        for name, buckets in found.items()
        if buckets.total
    }
    return Trace(told["requests"], told["joined"], parts)
