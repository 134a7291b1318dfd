"""Windows, added up as they come: counts, merged histograms, and how late requests were sent.

This is the one fold of a Window: of a second, of a worker, of a phase, in the report and beside the load.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import fmean

from reports.fold.records import classes_of, ratio
from reports.histogram.buckets import EMPTY, Buckets, compact, mean_ns
from reports.ledger.ledger import Record

MILLI = 1_000
PHASES = ("encode", "send", "wait", "receive", "decode")
"""Of the service time on the client; an endpoint measures those that it can tell apart."""
HTTP2_PHASES = ("stream_wait", "flow_wait")
"""Those of a call on our own HTTP/2 connections, before it is sent."""
REFUSALS = ("429", "RESOURCE_EXHAUSTED", "503", "UNAVAILABLE")
"""Codes by which a server refuses a request that it might take at another time."""
CONNECT, SENT = "connect", "send"
"""The phase of requests for which a connection was made; and one that a client which tells of it has, too."""


@dataclass
class Results:
    """What came back in some windows; `names` are the histograms that are kept of them, all where it is None.

    Images belong to successes only. `spread_milli_images` are thousandths of them by when they were worked on
    rather than by when their requests ended: a request's images are spread evenly over its time. Windows that
    do not tell have them where they ended; `is_spread` is whether any tells. `late` is None where a window
    does not tell, `good`, the successes within the objective of --slo, where one with requests does not.
    """

    names: Set[str] | None = None
    ok: int = 0
    images: int = 0
    late: int | None = 0
    failure_kinds: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Buckets] = field(default_factory=dict)
    spread_milli_images: int = 0
    is_spread: bool = False
    good: int | None = 0

    @property
    def failures(self) -> int:
        """Requests that finished wrong."""
        return self.failure_kinds.total()

    @property
    def finished(self) -> int:
        """Requests that came back, right or wrong."""
        return self.ok + self.failures

    def histogram(self, name: str) -> Buckets:
        """One of them; empty where no window had it."""
        return self.histograms.get(name, EMPTY)

    def add(self, windows: Sequence[Record]) -> None:
        """Takes in seconds of workers, whose histograms are decoded."""
        for window in windows:
            self._count(window)
        self._merge([window["histograms"] for window in windows])

    def merge(self, other: "Results") -> None:
        """Takes in what came back elsewhere."""
        self.ok += other.ok
        self.images += other.images
        self.spread_milli_images += other.spread_milli_images
        self.is_spread |= other.is_spread
        self.late = _plus(self.late, other.late)
        self.good = _plus(self.good, other.good)
        self.failure_kinds.update(other.failure_kinds)
        self._merge([other.histograms])

    def _count(self, window: Record) -> None:
        self.ok += window["ok"]
        self.images += window["images"]
        spread = window.get("spread_milli_images")
        self.spread_milli_images += MILLI * window["images"] if spread is None else spread
        self.is_spread |= spread is not None
        self.late = _plus(self.late, window.get("late"))
        _count_in(self.failure_kinds, window["failures"])
        if window["ok"] or window["failures"]:
            self.good = _plus(self.good, window.get("good"))

    def _merge(self, parts: Sequence[Mapping[str, Buckets]]) -> None:
        found: dict[str, list[Buckets]] = {}
        for part in parts:
            for name in part if self.names is None else part.keys() & self.names:
                found.setdefault(name, [self.histogram(name)]).append(part[name])
        self.histograms |= {name: compact(some) for name, some in found.items()}


class Silences:
    """By second the longest time until an answer in it for which requests waited and none was answered.

    Each worker tells its longest in a second: all of them are silent where these overlap.
    """

    def __init__(self) -> None:
        self._by_second: dict[int, tuple[int, int, int, int]] = {}
        """Where all begin and the first ends, the shortest of them, and how many there are."""

    def add(self, windows: Sequence[Record]) -> None:
        """Takes in seconds of workers."""
        for window in windows:
            if silence := window.get("silence"):
                from_ns, to_ns = silence
                known = self._by_second.get(window["second"], (0, to_ns, to_ns - from_ns, 0))
                self._by_second[window["second"]] = (
                    max(known[0], from_ns),
                    min(known[1], to_ns),
                    min(known[2], to_ns - from_ns),
                    known[3] + 1,
                )

    def of(self, workers: int) -> list[tuple[int, int, int]]:
        """Of seconds in which all workers told: when the silence of all began, how long it was, and how long
        the shortest of a worker, all in ns.
        """
        told = (found for _, found in sorted(self._by_second.items()) if found[3] == workers)
        return [(from_ns, max(0, to_ns - from_ns), least_ns) for from_ns, to_ns, least_ns, _ in told]


def class_results(windows: Sequence[Record]) -> dict[str, Results]:
    """What came back of each class of requests in seconds of workers, whose histograms are decoded."""
    parts: dict[str, list[Record]] = {}
    for window in windows:
        for label, one in classes_of(window).items():
            # A class has no kinds of failures.
            failures = {"": one["failures"]} if one["failures"] else {}
            parts.setdefault(label, []).append({**one, "failures": failures})
    found = {label: Results() for label in parts}
    for label, some in parts.items():
        found[label].add(some)
    return found


@dataclass
class Windows(Results):
    """All that windows tell; bytes belong to successes only, `abandoned` were killed at the stop.

    `failure_codes` are failures by HTTP status, gRPC code or the system's name of the error, of those that
    have one; `refused_for` refusals by what the server says is full: `queue`, `rate` or, where the request is
    too large, `size`. `retry_after` of them said when to ask again, in `retry_after_s` seconds together.
    `cache_hits` are successes that a cache answered, of the `cache_queries` whose headers tell of one.
    `connects` are successes that waited for a connection to be made; None where a window does not tell.
    `resent` of them were sent once more, since an idle connection had been closed.
    `first_start_ns` and `last_end_ns` are on a worker's own clock, 0 where nothing began or ended.
    `other_phases` are requests of those that were at the server between its two readings.
    """

    seen: int = 0
    abandoned: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    server_count: int = 0
    server_ns: Counter[str] = field(default_factory=Counter)
    out_of_range: Counter[str] = field(default_factory=Counter)
    failure_codes: Counter[str] = field(default_factory=Counter)
    refused_for: Counter[str] = field(default_factory=Counter)
    retry_after: int = 0
    retry_after_s: int = 0
    cache_hits: int = 0
    cache_queries: int = 0
    connects: int | None = 0
    resent: int = 0
    first_start_ns: int = 0
    last_end_ns: int = 0
    other_phases: int = 0

    @property
    def sent(self) -> int:
        """Requests that were begun: finished ones and those killed at the stop."""
        return self.finished + self.abandoned

    @property
    def at_server(self) -> int:
        """The most that the server may have counted between its readings, which were made under load."""
        return self.sent + self.other_phases

    @property
    def span_ns(self) -> int:
        """From the first start to the last end; 0 without both."""
        whole = self.first_start_ns and self.last_end_ns
        return self.last_end_ns - self.first_start_ns if whole else 0

    def _count(self, window: Record) -> None:
        super()._count(window)
        self.seen += 1
        self.abandoned += int(window["abandoned"])
        self.request_bytes += window["request_bytes"]
        self.response_bytes += window["response_bytes"]
        self.server_count += window.get("server_count") or 0
        _count_in(self.server_ns, window.get("server_ns"))
        _count_in(self.out_of_range, window.get("out_of_range"))
        _count_in(self.failure_codes, window.get("failure_codes"))
        _count_in(self.refused_for, window.get("refused_for"))
        self.retry_after += window.get("retry_after") or 0
        self.retry_after_s += window.get("retry_after_s") or 0
        self.cache_hits += window.get("cache_hits") or 0
        self.cache_queries += window.get("cache_queries") or 0
        self.connects = _plus(self.connects, window.get("connects"))
        self.resent += window.get("resent") or 0
        first_ns = window.get("first_start_ns") or self.first_start_ns
        self.first_start_ns = min(self.first_start_ns or first_ns, first_ns)
        self.last_end_ns = max(self.last_end_ns, window.get("last_end_ns") or 0)


def _count_in(total: Counter[str], some: Mapping[str, int] | None) -> None:
    # most windows have none, and an update takes its time
    if some:
        total.update(some)


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def abandoned(workers: Mapping[str, Windows], drained: Sequence[Record]) -> int:
    """Requests killed at the stop; a worker's drained line knows better what it abandoned."""
    stated = {line["worker"]: int(line["abandoned"]) for line in drained}
    return sum(seen.abandoned for name, seen in workers.items() if name not in stated) + sum(stated.values())


@dataclass(frozen=True, kw_only=True)
class ClientPhases:
    """Means per success of the service time's parts on the client; None where one is not told apart.

    `connect_ns` is a mean over all successes, those that went over a kept connection included; of it
    `resolve_ns` is the look-up of the host's name, and `handshake_ns` the rest. Of HTTP/2 are
    `stream_wait_ns`, the wait for a free stream, and `flow_wait_ns`, that for a window to send into.
    """

    connect_ns: float | None = None
    resolve_ns: float | None = None
    encode_ns: float | None = None
    stream_wait_ns: float | None = None
    flow_wait_ns: float | None = None
    send_ns: float | None = None
    wait_ns: float | None = None
    receive_ns: float | None = None
    decode_ns: float | None = None

    @property
    def handshake_ns(self) -> float | None:
        """Connecting without the look-up, where that is known."""
        return None if self.connect_ns is None else self.connect_ns - (self.resolve_ns or 0.0)


def client_phases(found: Windows) -> ClientPhases:
    """From the histograms of the phases."""
    means = {f"{phase}_ns": mean_ns(found.histogram(phase)) for phase in PHASES}
    means |= {f"{phase}_ns": _per_success(found, phase) for phase in HTTP2_PHASES}
    return ClientPhases(connect_ns=_connect_ns(found), resolve_ns=_per_success(found, "resolve"), **means)


def _connects(found: Windows) -> int | None:
    """Successes for which a connection was made; None where it is not known: grpcio does not tell."""
    return found.connects if found.histogram(SENT).total else None


def _connect_ns(found: Windows) -> float | None:
    """Making connections, per success."""
    return None if _connects(found) is None else _per_success(found, CONNECT) or 0.0


def _per_success(found: Windows, phase: str) -> float | None:
    """A mean over all successes, also over those that did not have the phase; None where none had it."""
    some = found.histogram(phase)
    mean = mean_ns(some)
    return None if mean is None else ratio(mean * some.total, found.ok)


@dataclass(frozen=True, kw_only=True)
class RequestCounts:
    """Requests that came back, of them those that failed, and those killed at the stop; None before any.

    Images, bytes and rates are of successes, bytes are means per request; rates are over `measure_ns`.
    `failure_codes`, `refused_for`, `retry_after`, `retry_after_s`, `connects` and `resent` are as Windows
    have them.
    """

    requests: int | None = None
    failures: int | None = None
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    abandoned: int | None = None
    images: int | None = None
    measure_ns: float | None = None
    requests_per_s: float | None = None
    images_per_s: float | None = None
    request_bytes: float | None = None
    response_bytes: float | None = None
    failure_codes: Mapping[str, int] = field(default_factory=dict)
    refused_for: Mapping[str, int] = field(default_factory=dict)
    retry_after: int | None = None
    retry_after_s: int | None = None
    connects: int | None = None
    resent: int = 0

    @property
    def succeeded(self) -> int:
        """Requests that came back right."""
        return (self.requests or 0) - (self.failures or 0)

    @property
    def connects_per_request(self) -> float | None:
        """Connections made, per success; None where it is not known."""
        return ratio(self.connects, self.succeeded)


def request_counts(found: Windows, measured_ns: float | None) -> RequestCounts:
    """From the windows of a measure phase of so many nanoseconds."""
    counted = bool(found.images or not found.ok)
    return RequestCounts(
        requests=found.finished,
        failures=found.failures,
        failure_kinds=dict(found.failure_kinds),
        abandoned=found.abandoned,
        images=found.images,
        measure_ns=measured_ns,
        requests_per_s=_per_s(found.ok, measured_ns),
        images_per_s=_per_s(found.images, measured_ns) if counted else None,
        request_bytes=ratio(found.request_bytes, found.ok),
        response_bytes=ratio(found.response_bytes, found.ok),
        failure_codes=dict(found.failure_codes),
        refused_for=dict(found.refused_for),
        retry_after=found.retry_after,
        retry_after_s=found.retry_after_s,
        connects=_connects(found),
        resent=found.resent,
    )


def _per_s(total: int, elapsed_ns: float | None) -> float | None:
    return total / (elapsed_ns / 1e9) if elapsed_ns else None


def measure_ns(paced: bool, workers: Iterable[Windows], drained: Sequence[Record]) -> float | None:
    """How long a run measured, in ns; None where nothing began.

    Under closed-loop load the mean over users of the time from the first start of each to its first one after
    the phase: a rate over it has whole cycles of a user, its own time included, and times the mean service
    time it is the requests in flight (Little's law). Older ledgers do not tell of users: there
    it is the longest span of a worker, in which some had not begun and others had ended.

    Where requests are `paced`, by arrivals or by a course of the users, it is at least the longest phase of a
    worker: n arrivals span n - 1 gaps, so that their span alone would say 1.25 a second of 5 requests at 1 a
    second.
    """
    spans = [worker.span_ns for worker in workers]
    if paced:
        return max([*spans, *(int(line.get("phase_ns") or 0) for line in drained)], default=0) or None
    whole_ns, users = (
        _sum([line.get("users_ns") for line in drained]),
        _sum([line["users"] for line in drained]),
    )
    return ratio(whole_ns, users) if whole_ns else max(spans, default=0) or None


def other_phases(drained: Sequence[Record]) -> int:
    """Requests of other phases that the server may have counted between its readings; 0 in older ledgers."""
    return sum(int(line.get("other_phases") or 0) for line in drained)


def undrained(workers: Iterable[str], drained: Sequence[Record]) -> list[str]:
    """Those of the workers, which were seen measuring, that never said that they had finished."""
    return sorted(set(workers) - {line["worker"] for line in drained})


@dataclass(frozen=True)
class Offered:
    """What open-loop load sent: the sum of the workers' rates, their number, their phase's mean length."""

    per_s: float
    workers: int
    phase_s: float


@dataclass(frozen=True)
class Arrivals:
    """Counts of the measure phase; None where the ledger does not say, and but for `late` under closed-loop.

    `due` are the arrivals whose time came, `dropped` those of them that were never sent, `overslept` those
    that were sent late though a user was free.
    """

    late: int | None = None
    due: int | None = None
    dropped: int | None = None
    overslept: int | None = None
    offered: Offered | None = None

    @property
    def offered_per_s(self) -> float | None:
        """What was sent a second; None where nothing tells."""
        return self.offered.per_s if self.offered else None


def arrivals(load: str, windows: Windows, drained: Sequence[Record]) -> Arrivals:
    """From the windows and the drained lines of the measure phase."""
    late = windows.late if windows.seen else None
    if load != "open":
        return Arrivals(late=late)
    took_part = [line for line in drained if line.get("phase_ns")]
    counts = {name: _sum([line.get(name) for line in took_part]) for name in ("due", "dropped", "overslept")}
    return Arrivals(late=late, offered=_offered(took_part) if took_part else None, **counts)


def _offered(took_part: Sequence[Record]) -> Offered:
    phases_s = [line["phase_ns"] / 1e9 for line in took_part]
    rates = (line["sent"] / phase_s for line, phase_s in zip(took_part, phases_s, strict=True))
    return Offered(per_s=sum(rates), workers=len(took_part), phase_s=fmean(phases_s))


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum where every part is known; None else, and where there is none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
