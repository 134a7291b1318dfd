"""What the server counted between the start and the end of the measure phase, and what its answers stated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.executions import Batches, Cold, batches_of, cold, growth, went_backwards
from reports.fold.ratio import ratio
from reports.format import plural
from reports.ledger.ledger import Record

PARTS = ("decode", "preprocess", "queue", "input", "compute", "output", "upstream")
"""What a server states of the time it had a request: Triton and the services name different ones."""


GONE = frozenset({"refused", "unreachable", "reset", "timeout"})
"""Kinds of error of a reading that nobody answered."""
REFUSED = "server: refused"
"""How a sample tells of a second in which nobody listened."""
RESTARTED = "the server's counters went backwards: it restarted"


@dataclass(frozen=True)
class ServerSide:
    """Means per success on the server by part, and what it counted; None where it did not say.

    `executing_ns` is the time of all executions together, each counted once for all requests in it.
    """

    requests: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    executed_batch: float | None = None
    executing_ns: int | None = None
    cold: Cold = field(default_factory=Cold)
    gap: Caveat | None = None

    @property
    def server_ns(self) -> float | None:
        """All parts together."""
        return sum(self.parts.values()) if self.parts else None

    @property
    def queue_ns(self) -> float | None:
        """What a request waited for."""
        return self.parts.get("queue")

    @property
    def compute_ns(self) -> float | None:
        """What the model took."""
        return self.parts.get("compute")

    @property
    def other_ns(self) -> float | None:
        """Every part that is neither."""
        rest = (value for part, value in self.parts.items() if part not in ("queue", "compute"))
        return sum(rest, 0.0) if self.parts else None

    def busy_share(self, phase_ns: float | None, instances: int | None) -> float | None:
        """The share of the instances' time that was spent executing, at most 1."""
        if self.executing_ns is None or not phase_ns or not instances:
            return None
        return min(1.0, self.executing_ns / (phase_ns * float(instances)))


def server_side(
    readings: Sequence[Record], windows: Sequence[Record], status: str, samples: Sequence[Record] = ()
) -> ServerSide:
    """What the counters say; parts as the answers in `windows` state them, where they do.

    The answers' parts are of exactly the requests that were measured. `samples` are the seconds between the
    readings: a server that came back may have counted more by the end than it had at the beginning.
    """
    counted = counted_side(readings, status)
    if counted.gap is None and (lost := loss_between(readings, samples)):
        counted = ServerSide(gap=caveat("server-lost", lost))
    stated = stated_ns(windows)
    answers = sum(window["server_count"] for window in windows) if stated else 0
    if not answers:
        return counted
    executing_ns = stated.get("compute") if counted.executing_ns is None else counted.executing_ns
    means = {part: total / answers for part, total in stated.items()}
    return replace(counted, parts=means, executing_ns=executing_ns)


def stated_ns(windows: Sequence[Record]) -> dict[str, int]:
    """The sums of the parts that the answers' own `Server-Timing` named; of others it is not known what
    they hold."""
    found = {
        part: [w["server_ns"][part] for w in windows if part in w.get("server_ns", {})] for part in PARTS
    }
    return {part: sum(values) for part, values in found.items() if values}


def counted_side(readings: Sequence[Record], status: str) -> ServerSide:
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
            return ServerSide(gap=unread(reading))
        counters.append(reading["counters"])
    return between(*counters)


def unread(reading: Record) -> Caveat:
    """Why there are no counters: nobody answered any more after the measure phase, or they are not told."""
    if reading["when"] == "after" and reading.get("error_kind") in GONE:
        return caveat("server-lost", f"after the measure phase {reading['error']}")
    return caveat("probe-gap", reading["error"])


def loss_between(readings: Sequence[Record], samples: Sequence[Record]) -> str:
    """How the server was lost between the readings, or nothing: it was away for a while, or began anew."""
    refusals = [
        text for sample in samples for text in sample.get("missing") or () if text.startswith(REFUSED)
    ]
    if refusals:
        return f"nobody listened at the server's address in {plural(len(refusals), 'second')} of the phase"
    return RESTARTED if restarted(readings, samples) else ""


def restarted(readings: Sequence[Record], samples: Sequence[Record]) -> bool:
    """Whether the count of requests ever fell, from the reading before over the samples to the one after."""
    first, last = (_reading(readings, when) or {} for when in ("before", "after"))
    whole = [first.get("counters"), *(sample.get("server") for sample in samples), last.get("counters")]
    counts = [one["requests"] for one in whole if one and "requests" in one]
    return any(later < earlier for earlier, later in pairwise(counts))


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> ServerSide:
    """What lies between two readings of cumulative counters; a gap where they went backwards."""
    named = [name for name in before if name in after and name != "batches"]
    delta = {name: after[name] - before[name] for name in named}
    old, new = batches_of(before), batches_of(after)
    sized = old is not None and new is not None
    if any(value < 0 for value in delta.values()) or (sized and went_backwards(old or {}, new or {})):
        return ServerSide(gap=caveat("server-lost", RESTARTED))
    means = _means(delta)
    # Some backends count their executions and not by size: nothing grew there, and that is no idle server.
    told = sized and bool(growth(old or {}, new or {}))
    return _with_sizes(means, old or {}, new or {}) if told else means


def _reading(readings: Sequence[Record], when: str) -> Record | None:
    """The last reading of its kind; None where the server was not asked."""
    return next((reading for reading in reversed(readings) if reading["when"] == when), None)


def _means(delta: Mapping[str, int]) -> ServerSide:
    # A failed request spends little or no time in these parts, so it would dilute their means.
    served = delta.get("successes", delta.get("requests"))
    parts = {part: ratio(delta.get(f"{part}_ns"), served) for part in PARTS}
    # Of executions that several requests shared, each request counts the whole time.
    alone = delta.get("executions") == served
    return ServerSide(
        requests=delta.get("requests"),
        parts={part: value for part, value in parts.items() if value is not None},
        executed_batch=ratio(delta.get("images"), delta.get("executions")),
        executing_ns=delta.get("compute_ns") if alone else None,
    )


def _with_sizes(means: ServerSide, before: Batches, after: Batches) -> ServerSide:
    grown = growth(before, after)
    executing_ns = sum(done.time_ns for done in grown.values())
    return replace(means, executing_ns=executing_ns, cold=cold(before, grown))
