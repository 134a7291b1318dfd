"""What ONNX Runtime did with the model of the servers started here, profiled before any load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.ledger.ledger import Record

CPU = "CPUExecutionProvider"


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
        operators=tuple(_operator(one) for one in record["operators"]),
        timed=tuple(Timed(**one) for one in record["latencies"]),
        session_ns=tuple(map(float, record["session_ns"])),
        asked=tuple(map(str, record["asked"])),
        providers={str(name): int(count) for name, count in record["providers"].items()},
        fallbacks={str(one["operator"]): int(one["nodes"]) for one in record["fallbacks"]},
    )


def _operator(record: Record) -> Operator:
    return Operator(
        str(record["operator"]), int(record["nodes"]), float(record["time_ns"]), float(record["share"])
    )
