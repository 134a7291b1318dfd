"""What the server counted between the start and the end of the measure phase, by batch size and in all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.records import ratio
from reports.fold.windows import Windows
from reports.format import plural
from reports.ledger.ledger import Record

PARTS = ("decode", "preprocess", "queue", "input", "compute", "output", "upstream")
"""What a server states of the time it had a request: Triton and the services name different ones."""
GONE = frozenset({"refused", "unreachable", "reset", "timeout"})
"""Kinds of error of a reading that nobody answered."""
REFUSED = "server: refused"
"""How a sample tells of a second in which nobody listened."""
RESTARTED = "the server's counters went backwards: it restarted"
DEAR_TIMES, DEAR_ON_AVERAGE, LEAST_DEAR_NS = 3.0, 1.5, 10_000_000
"""When a new size was dear: its first execution, if it alone took all excess, and the mean of all, by how
many times what is predicted; and an excess that no hiccup of a scheduler makes."""


@dataclass(frozen=True)
class Executed:
    """How many executions, and their time together."""

    count: int
    time_ns: int

    @property
    def mean_ns(self) -> float:
        """Of one execution; there must be one."""
        return self.time_ns / self.count


Batches = Mapping[int, Executed]
NOTHING = Executed(0, 0)


@dataclass(frozen=True)
class Cold:
    """The share of execution time that went into new batch sizes beyond what they cost when warm.

    `batches` are the sizes it went into. `share` is None where the server tells nothing of sizes, and where
    there is no warm size to predict from; then `batches` are all the new ones.
    """

    share: float | None = None
    batches: tuple[int, ...] = ()


def batches_of(counters: Mapping[str, Any]) -> Batches | None:
    """Executions by size since the server's start; None where it does not tell."""
    stated = counters.get("batches")
    return None if stated is None else {int(size): Executed(*counted) for size, counted in stated.items()}


def growth(before: Batches, after: Batches) -> Batches:
    """What was executed between two readings; sizes that were not are left out."""
    grown = {size: _between(before.get(size, NOTHING), now) for size, now in after.items()}
    return {size: done for size, done in grown.items() if done.count}


def went_backwards(before: Batches, after: Batches) -> bool:
    """Whether some size was executed less often at the later reading, as after a restart."""
    return any(after.get(size, NOTHING).count < old.count for size, old in before.items())


def cold(before: Batches, grown: Batches) -> Cold:
    """What of the growth since `before` went into sizes that had never been executed.

    The prediction comes from sizes that were warm and executed in the same phase; without any, from what
    others had cost before it, which holds their own first executions and so errs towards saying nothing.
    """
    warmed = {size: done for size, done in before.items() if done.count}
    new = {size: done for size, done in grown.items() if size not in warmed}
    warm = {size: done for size, done in grown.items() if size in warmed} or warmed
    time_ns = sum(done.time_ns for done in grown.values())
    if (new and not warm) or not time_ns:
        return Cold(None, tuple(sorted(new)))
    excess = {size: excess_ns(done, predicted_ns(size, warm)) for size, done in new.items()}
    return Cold(sum(excess.values()) / time_ns, tuple(sorted(size for size in excess if excess[size])))


def predicted_ns(size: int, warm: Batches) -> float:
    """The most that a warm execution of a size should take, by the dearest of the sizes that were warm.

    A larger size than a warm one takes at most as much longer as it is larger, a smaller one no longer.
    """
    return max(done.mean_ns * max(1.0, size / known) for known, done in warm.items())


def excess_ns(done: Executed, predicted: float) -> float:
    """What the executions of a new size took beyond the prediction; 0 where that is nothing remarkable.

    Counters cannot tell the first execution from those after it. So all excess is taken as the first one's:
    it is dear where that makes it 3 times as long as predicted. Of a size that was often executed a slightly
    low prediction could add up to that too, so the mean must be half as long again.
    """
    excess = done.time_ns - done.count * predicted
    first = excess > max((DEAR_TIMES - 1) * predicted, LEAST_DEAR_NS)
    return excess if first and done.mean_ns > DEAR_ON_AVERAGE * predicted else 0.0


def _between(old: Executed, now: Executed) -> Executed:
    return Executed(now.count - old.count, now.time_ns - old.time_ns)


@dataclass(frozen=True)
class ServerSide:
    """Means per success on the server by part, and what it counted; None where it did not say.

    `executing_ns` is the time of all executions together, each counted once for all requests in it. `busy` is
    that over the time of all instances, at most 1. `silent`: it was asked, and states no times at all.
    """

    requests: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    executed_batch: float | None = None
    executing_ns: int | None = None
    busy: float | None = None
    cold: Cold = field(default_factory=Cold)
    gap: Caveat | None = None
    silent: bool = False

    @property
    def total_ns(self) -> float | None:
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

    def over(self, phase_ns: float | None, instances: int | None) -> "ServerSide":
        """The same of a phase so long, on so many instances."""
        busy = ratio(self.executing_ns, (phase_ns or 0.0) * (instances or 0))
        return replace(self, busy=None if busy is None else min(1.0, busy))


def server_side(
    readings: Sequence[Record],
    windows: Windows,
    status: str,
    missed: Sequence[str] = (),
    counts: Sequence[int] = (),
) -> ServerSide:
    """What the counters say; parts as the answers in `windows` state them, where they do.

    The answers' parts, which their own `Server-Timing` named, are of exactly the requests that were measured;
    of other parts it is not known what they hold. `missed` is what was said of each second between the
    readings that could not be sampled, and `counts` are the requests that the others say were counted: a
    server that came back may have counted more by the end than it had at the beginning.
    """
    counted = counted_side(readings, status)
    if counted.gap is None and (lost := loss_between(readings, missed, counts)):
        counted = ServerSide(gap=caveat("server-lost", lost))
    stated = {part: windows.server_ns[part] for part in PARTS if part in windows.server_ns}
    if not stated or not windows.server_count:
        return counted
    executing_ns = stated.get("compute") if counted.executing_ns is None else counted.executing_ns
    means = {part: total / windows.server_count for part, total in stated.items()}
    return replace(counted, parts=means, executing_ns=executing_ns, silent=False)


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


def loss_between(readings: Sequence[Record], missed: Sequence[str], counts: Sequence[int]) -> str:
    """How the server was lost between the readings, or nothing: it was away for a while, or began anew."""
    refusals = [text for text in missed if text.startswith(REFUSED)]
    if refusals:
        return f"nobody listened at the server's address in {plural(len(refusals), 'second')} of the phase"
    first, last = ((_reading(readings, when) or {}).get("counters") or {} for when in ("before", "after"))
    whole = [first.get("requests"), *counts, last.get("requests")]
    fell = (later < earlier for earlier, later in pairwise(count for count in whole if count is not None))
    return RESTARTED if any(fell) else ""


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> ServerSide:
    """What lies between two readings of cumulative counters; a gap where they went backwards."""
    named = [name for name in before if name in after and name != "batches"]
    delta = {name: after[name] - before[name] for name in named}
    old, new = batches_of(before), batches_of(after)
    sized = old is not None and new is not None
    if any(value < 0 for value in delta.values()) or (sized and went_backwards(old or {}, new or {})):
        return ServerSide(gap=caveat("server-lost", RESTARTED))
    silent = not any(name == "batches" or name.endswith("_ns") for name in (*before, *after))
    means = replace(_means(delta), silent=silent)
    # Some backends count their executions and not by size: nothing grew there, and that is no idle server.
    grown = growth(old or {}, new or {}) if sized else {}
    if not grown:
        return means
    executing_ns = sum(done.time_ns for done in grown.values())
    return replace(means, executing_ns=executing_ns, cold=cold(old or {}, grown))


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


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Instances, largest batch, whether requests are batched, how long they wait for it; None if untold."""

    instances: int | None = None
    max_batch: int | None = None
    batching: bool | None = None
    batching_delay_ns: int | None = None


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
