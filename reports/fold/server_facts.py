"""What is known of the server behind a run: its memory, its operators, Triton's own trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.histogram.buckets import percentiles_ns
from reports.ledger.ledger import Record

CPU = "CPUExecutionProvider"
PARTS = ("receive", "queue", "input", "compute", "output", "send", "server", "outside")


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
    """As `python -m server profile` told it; `error` says why there is none, and all else is empty then.

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
    """Of one part, over the requests that were found in the trace."""

    p50_ns: float
    p95_ns: float
    p99_ns: float


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
        name: Percentiles(
            *(float(value) for value in percentiles_ns(buckets, (50, 95, 99)) if value is not None)
        )
        for name, buckets in found.items()
        if buckets.total
    }
    return Trace(told["requests"], told["joined"], parts)
