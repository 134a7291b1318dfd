"""What the server counted between the start and the end of the measure phase, by batch size and in all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.records import ratio
from reports.fold.replicas import Seen, counts_a_part, fate, said_of_several, too_busy, too_few
from reports.fold.server_facts import Serving
from reports.fold.windows import Windows
from reports.format import listed, plural
from reports.ledger.ledger import Record

PARTS = ("decode", "preprocess", "queue", "input", "compute", "output", "upstream", "cache")
"""What a server states of the time it had a request: Triton and the services name different ones."""
GONE = frozenset({"refused", "unreachable", "reset", "timeout"})
"""Kinds of error of a reading that nobody answered."""
REFUSED = "server: refused"
"""How a sample tells of a second in which nobody listened."""
BROKEN = frozenset({"refused", "unreachable", "reset"})
"""Kinds of failures of a server that has gone: a model that is loaded anew breaks no connection."""
SEVERAL = "several"
"""How a reading tells that its address is one of several servers, each with counters of its own."""
MOST_NAMED = 4
OF_NO_SUM = ("batches", "steps")
"""What counters hold by name, and not as a number."""
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
class EnsembleStep:
    """One model of an ensemble: means per request of its queue and its work, and all of its executions.

    `busy` is the time of these over that of its instances, at most 1; None where one of the two is unknown.
    """

    queue_ns: float | None = None
    work_ns: float | None = None
    executing_ns: int | None = None
    executions: int | None = None
    instances: int | None = None
    busy: float | None = None

    def over(self, phase_ns: float, instances: int | None) -> "EnsembleStep":
        """The same of a phase so long, on so many instances."""
        return replace(self, instances=instances, busy=_busy(self, phase_ns, instances)[0])


@dataclass(frozen=True)
class ServerSide:
    """Means per success on the server by part, and what it counted; None where it did not say.

    `executing_ns` is the time of all `executions` together, each counted once for all requests in it. `busy`
    is that over the time of all instances, at most 1. `batches` are the executions by size, where it tells.
    `steps` are the models of an ensemble, the one that computes last. `several` says how other servers were
    seen to have a part of the requests, empty where none was: what was counted is then of one of them, and
    how busy all were is unknown. `silent`: it was asked, and states no times at all. `span_ns` is the time
    between the two readings, made under load; None where they waited for all requests. `cache_share` is what
    a cache answered of all that it was asked, as counters or answers' headers tell: of requests or tokens.
    """

    requests: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    executed_batch: float | None = None
    executing_ns: int | None = None
    executions: int | None = None
    busy: float | None = None
    cold: Cold = field(default_factory=Cold)
    batches: Batches = field(default_factory=dict)
    steps: Mapping[str, EnsembleStep] = field(default_factory=dict)
    several: str = ""
    gap: Caveat | None = None
    silent: bool = False
    span_ns: int | None = None
    cache_share: float | None = None

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

    def over(self, phase_ns: float | None, serving: Serving | None) -> "ServerSide":
        """The same of a phase so long, of a server that was set up so."""
        told, whole_ns = serving or Serving(), self.span_ns or phase_ns or 0.0
        busy, crowded = _busy(self, whole_ns, told.instances)
        instances = {} if self.several else told.steps or {}
        steps = {name: step.over(whole_ns, instances.get(name)) for name, step in self.steps.items()}
        return replace(
            self,
            busy=None if self.several else busy,
            steps=steps,
            several="; ".join(filter(None, (self.several, crowded))),
        )


def _busy(
    side: ServerSide | EnsembleStep, phase_ns: float, instances: int | None
) -> tuple[float | None, str]:
    """The share of its instances' time in which executions ran; None, and why, where that cannot be."""
    busy = ratio(side.executing_ns, phase_ns * (instances or 0))
    one_ns = ratio(side.executing_ns, side.executions) or 0.0
    crowded = too_busy(busy, ratio(one_ns, phase_ns) or 0.0, instances)
    return (None if busy is None or crowded else min(1.0, busy)), crowded


def server_side(
    readings: Sequence[Record],
    windows: Windows,
    status: str,
    missed: Sequence[str] = (),
    sampled: Sequence[Seen] = (),
    began_s: float | None = None,
) -> ServerSide:
    """What the counters say; parts as the answers in `windows` state them, where they do.

    The answers' parts, which their own `Server-Timing` named, are of exactly the requests that were measured;
    of other parts it is not known what they hold. `missed` is what was said of each second between the
    readings that could not be sampled, and `sampled` is what the others tell: a server that came back may
    have counted more by the end than it had at the beginning. `began_s` is when the phase began, in seconds
    since 1970.
    """
    counted = counted_side(readings, status, windows, missed, sampled, began_s)
    if counts_a_part(counted.requests, windows):
        counted = replace(counted, several=counted.several or too_few(counted.requests, windows))
    shares = (counted.cache_share, cache_share(windows.cache_hits, windows.cache_queries))
    counted = replace(counted, cache_share=max((one for one in shares if one is not None), default=None))
    stated = {part: windows.server_ns[part] for part in PARTS if part in windows.server_ns}
    if not stated or not windows.server_count:
        return counted
    if counted.executing_ns is None:
        counted = replace(
            counted, executing_ns=stated.get("compute"), executions=windows.server_count, span_ns=None
        )
    means = {part: total / windows.server_count for part, total in stated.items()}
    return replace(counted, parts=means, silent=False)


def counted_side(
    readings: Sequence[Record],
    status: str,
    windows: Windows,
    missed: Sequence[str] = (),
    sampled: Sequence[Seen] = (),
    began_s: float | None = None,
) -> ServerSide:
    """The difference of the counters read after and before the measure phase, or why there is none.

    Of a run with another status than `done` it is no wonder where nobody asked: its status says enough.
    """
    edges = []
    for when in ("before", "after"):
        reading = _reading(readings, when)
        if reading is None:
            said = f"the server was not asked {when} the measure phase"
            return ServerSide(gap=caveat("probe-gap", said) if status == "done" else None)
        if reading.get("error_kind") == SEVERAL:
            return ServerSide(several=reading["error"])
        if "counters" not in reading:
            return ServerSide(gap=unread(reading))
        edges.append(reading)
    if away := sum(text.startswith(REFUSED) for text in missed):
        said = f"nobody listened at the server's address in {plural(away, 'second')} of the phase"
        return ServerSide(gap=caveat("server-lost", said))
    found = _of_one(edges, windows, missed, sampled, began_s)
    return replace(found, span_ns=_grown(*edges))


def _grown(before: Record, after: Record) -> int | None:
    """The time from one reading to the other; None where they do not tell."""
    first_ns, last_ns = before.get("t_ns"), after.get("t_ns")
    return None if first_ns is None or last_ns is None else last_ns - first_ns


def _of_one(
    edges: Sequence[Record],
    windows: Windows,
    missed: Sequence[str],
    sampled: Sequence[Seen],
    began_s: float | None,
) -> ServerSide:
    """What lies between two readings, as far as they are of one server and one model that ran on."""
    before, after = (reading["counters"] for reading in edges)
    found = between(before, after)
    first, last = (
        Seen(reading["counters"].get("requests"), reading.get("identity") or "") for reading in edges
    )
    seen = (first, *sampled, last)
    if fell := _no_counters(before, after, seen, windows):
        rest = between(*({name: side[name] for name in side if name not in fell} for side in (before, after)))
        said = f"{listed(fell)} fell while requests were counted on, so what they count is unknown"
        return replace(rest, gap=caveat("probe-gap", said))
    unread_seconds = sum(text.startswith("server:") for text in missed)
    came = fate(seen, windows.at_server, unread_seconds, found.gap is not None, began_s)
    versions = [reading.get("version") or "" for reading in edges]
    if came == "restarted" or (came == "one" and versions[0] != versions[1]):
        return ServerSide(gap=_began_again(seen, versions, windows, missed))
    if came == "one":
        return found
    known = found if first.identity and first.identity == last.identity else ServerSide()
    return replace(known, several=said_of_several(seen), gap=None)


def _no_counters(
    before: Mapping[str, Any], after: Mapping[str, Any], seen: Sequence[Seen], windows: Windows
) -> list[str]:
    """Those that fell though one server counted all requests, and did not begin again."""
    counted = [one.requests for one in seen if one.requests is not None]
    whole = len(counted) > 1 and windows.ok <= counted[-1] - counted[0] <= windows.at_server
    if not whole or any(later < earlier for earlier, later in pairwise(counted)):
        return []
    return [name for name in _numbers(before, after) if after[name] < before[name]]


def _began_again(
    seen: Sequence[Seen], versions: Sequence[str], windows: Windows, missed: Sequence[str]
) -> Caveat:
    """What is known of why counters began again: the server or its model, or neither can be told."""
    names = list(dict.fromkeys(one.identity for one in seen if one.identity))
    hosts = {name.rpartition("/")[0] for name in names}
    broken = sum(windows.failure_kinds[kind] for kind in BROKEN)
    gone = any(text.startswith(f"server: {kind}") for text in missed for kind in BROKEN)
    if len(hosts) > 1:
        return caveat("counters-reset", f"another server took over ({', '.join(names[:MOST_NAMED])})")
    if len(names) > 1:
        return caveat("server-lost", f"the server restarted: its process is another one ({names[-1]})")
    if all(versions) and versions[0] != versions[1]:
        said = f"version {versions[0]} of the model answered at first, and version {versions[1]} at last"
        return caveat("counters-reset", said)
    if names:
        return caveat("counters-reset", "the server's counters began again, and its process ran on")
    if broken or gone:
        lost = f"{plural(broken, 'request')} lost the connection" if broken else "it did not listen"
        return caveat("server-lost", f"the server's counters began again, and {lost}: it restarted")
    return caveat(
        "counters-reset",
        "the server's counters began again, and no connection broke: its model was loaded anew, or another "
        "server took over",
    )


def unread(reading: Record) -> Caveat:
    """Why there are no counters: nobody answered any more after the measure phase, or they are not told."""
    if reading["when"] == "after" and reading.get("error_kind") in GONE:
        return caveat("server-lost", f"after the measure phase {reading['error']}")
    return caveat("probe-gap", reading["error"])


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> ServerSide:
    """What lies between two readings of cumulative counters; a gap where they went backwards."""
    delta = {name: after[name] - before[name] for name in _numbers(before, after)}
    old, new = batches_of(before), batches_of(after)
    sized = old is not None and new is not None
    if any(value < 0 for value in delta.values()) or (sized and went_backwards(old or {}, new or {})):
        return ServerSide(gap=caveat("counters-reset", "the server's counters went backwards"))
    silent = not any(name == "batches" or name.endswith("_ns") for name in (*before, *after))
    means = replace(_means(delta), silent=silent, steps=steps_between(before, after))
    # Some backends count their executions and not by size: nothing grew there, and that is no idle server.
    grown = growth(old or {}, new or {}) if sized else {}
    if not grown:
        return means
    executing_ns = sum(done.time_ns for done in grown.values())
    executions = sum(done.count for done in grown.values())
    found = replace(means, executing_ns=executing_ns, executions=executions, batches=grown)
    return replace(found, cold=cold(old or {}, grown))


def _numbers(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of counters that both readings have."""
    return [name for name in before if name in after and name not in OF_NO_SUM]


def steps_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, EnsembleStep]:
    """What each step of an ensemble did between two readings; those that began anew are left out."""
    found, old = {}, before.get("steps") or {}
    for name, now in (after.get("steps") or {}).items():
        told = old.get(name) or {}
        delta = {counter: now[counter] - told[counter] for counter in now if counter in told}
        if delta and min(delta.values()) >= 0:
            found[name] = _step(delta)
    return found


def _step(delta: Mapping[str, int]) -> EnsembleStep:
    served, executions = delta.get("successes"), delta.get("executions")
    # Of executions that several requests shared, the work of each request holds the whole time.
    alone = delta.get("work_ns") if served is not None and executions == served else None
    return EnsembleStep(
        queue_ns=ratio(delta.get("queue_ns"), served),
        work_ns=ratio(delta.get("work_ns"), served),
        executing_ns=delta.get("executing_ns") or alone,
        executions=executions,
    )


def _reading(readings: Sequence[Record], when: str) -> Record | None:
    """The last reading of its kind; None where the server was not asked."""
    return next((reading for reading in reversed(readings) if reading["when"] == when), None)


def _means(delta: Mapping[str, int]) -> ServerSide:
    # A failed request spends little or no time in these parts, so it would dilute their means.
    served = delta.get("successes", delta.get("requests"))
    parts = {part: ratio(delta.get(f"{part}_ns"), served) for part in PARTS}
    # Of executions that several requests shared, each request counts the whole time.
    alone = served is not None and delta.get("executions") == served
    return ServerSide(
        requests=delta.get("requests"),
        parts={part: value for part, value in parts.items() if value is not None},
        executed_batch=ratio(delta.get("images"), delta.get("executions")),
        executing_ns=delta.get("compute_ns") if alone else None,
        executions=delta.get("executions"),
        cache_share=cache_share(delta.get("cache_hits"), delta.get("cache_queries")),
    )


def cache_share(hits: int | None, queries: int | None) -> float | None:
    """What a cache answered of all that it was asked, at most 1; None where none is known of."""
    share = ratio(hits, queries)
    return None if share is None else min(1.0, share)
