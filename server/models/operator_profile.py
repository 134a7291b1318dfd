"""What ONNX Runtime's profile of a session says: which operators took the time, and who ran them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CPU = "CPUExecutionProvider"
KERNEL = "_kernel_time"

Event = Mapping[str, Any]


class TraceError(ValueError):
    """A profile that does not hold what was run; the text is one sentence."""


def operators_of(events: Sequence[Event], warm_up: int) -> dict[str, Any]:
    """The trace of one session, without its first `warm_up` inferences, as plain values. Raises TraceError.

    `operators`: each type with its count of nodes, mean nanoseconds per inference and share of all operators'
    time, greatest first; `providers`: nodes by who ran them; `inference_ns`: the mean of whole inferences;
    `inferences` is how many that is. ONNX Runtime rounds each node's time down to a microsecond.
    """
    began = sorted(event["ts"] for event in events if event["name"] == "model_run")[warm_up:]
    if not began:
        raise TraceError(f"ONNX Runtime's profile has no inference after {warm_up} of warm-up")
    whole_us = [event["dur"] for event in events if event["name"] == "model_run" and event["ts"] >= began[0]]
    kernels = [event for event in events if is_kernel(event) and event["ts"] >= began[0]]
    spent_us = Counter[str]()
    for event in kernels:
        spent_us[event["args"]["op_name"]] += event["dur"]
    if not spent_us.total():
        raise TraceError("ONNX Runtime's profile names no operator that took any time")
    nodes = nodes_of(kernels)
    counts = Counter(operator for operator, _ in nodes.values())
    return {
        "operators": [
            {
                "operator": name,
                "nodes": counts[name],
                "time_ns": round(1000 * us / len(began)),
                "share": us / spent_us.total(),
            }
            for name, us in spent_us.most_common()
        ],
        "executed_nodes": len(nodes),
        "providers": dict(Counter(provider for _, provider in nodes.values()).most_common()),
        "inferences": len(began),
        "inference_ns": round(1000 * sum(whole_us) / len(began)),
    }


def fallbacks_of(events: Iterable[Event], asked: Sequence[str]) -> list[dict[str, Any]]:
    """The operators that fell back on the processor, with their count of nodes, most first.

    None where the processor is what was asked for first: nothing can fall back then.
    """
    if asked[0] == CPU:
        return []
    nodes = nodes_of(event for event in events if is_kernel(event)).values()
    fell = Counter(operator for operator, provider in nodes if provider == CPU)
    return [{"operator": operator, "nodes": count} for operator, count in fell.most_common()]


def nodes_of(kernels: Iterable[Event]) -> dict[tuple[str, str], tuple[str, str]]:
    """Each node that ran, by name and number: its operator and its execution provider."""
    return {
        (event["name"], event["args"]["node_index"]): (event["args"]["op_name"], event["args"]["provider"])
        for event in kernels
    }


def is_kernel(event: Event) -> bool:
    """Whether an event is one node's computing."""
    return event.get("cat") == "Node" and str(event["name"]).endswith(KERNEL)
