"""What the server counted between the start and the end of the measure phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.caveat import Caveat, caveat
from reports.ledger import Record

# What a server states of the time it had a request: Triton and the PyTorch service name different parts.
PARTS = ("decode_ns", "preprocess_ns", "queue_ns", "input_ns", "compute_ns", "output_ns")


@dataclass(frozen=True)
class ServerSide:
    """Means per success on the server, and how many requests it saw; None where it did not say."""

    requests: int | None = None
    server_ns: float | None = None
    queue_ns: float | None = None
    compute_ns: float | None = None
    executed_batch: float | None = None
    gap: Caveat | None = None


def server_side(readings: Sequence[Record], status: str) -> ServerSide:
    """The difference of the counters read after and before the measure phase, or why there is none.

    Of a run with another status than `done` it is no wonder where nobody asked: its status says enough.
    """
    counters = []
    for when in ("before", "after"):
        reading = _reading(readings, when)
        if reading is None:
            said = f"the server was not asked {when} the measure phase"
            return ServerSide(gap=caveat("probe-gap", said) if status == "done" else None)
        if "counters" not in reading:
            return ServerSide(gap=caveat("probe-gap", reading["error"]))
        counters.append(reading["counters"])
    return between(*counters)


def between(before: Mapping[str, int], after: Mapping[str, int]) -> ServerSide:
    """What lies between two readings of cumulative counters; a gap where they went backwards."""
    delta = {name: after[name] - value for name, value in before.items() if name in after}
    if any(value < 0 for value in delta.values()):
        return ServerSide(gap=caveat("server-lost", "the server's counters went backwards: it restarted"))
    return _means(delta)


def _reading(readings: Sequence[Record], when: str) -> Record | None:
    """The last reading of its kind; None where the server was not asked."""
    return next((reading for reading in reversed(readings) if reading["when"] == when), None)


def _means(delta: Mapping[str, int]) -> ServerSide:
    # A failed request spends little or no time in these parts, so it would dilute their means.
    served = delta.get("successes", delta.get("requests"))
    parts = [delta[part] for part in PARTS if part in delta]
    return ServerSide(
        requests=delta.get("requests"),
        server_ns=_ratio(sum(parts) if parts else None, served),
        queue_ns=_ratio(delta.get("queue_ns"), served),
        compute_ns=_ratio(delta.get("compute_ns"), served),
        executed_batch=_ratio(delta.get("images"), delta.get("executions")),
    )


def _ratio(total: int | None, count: int | None) -> float | None:
    return total / count if total is not None and count else None
