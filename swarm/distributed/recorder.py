"""The worker's recorder: sole consumer of Results, which it folds into Windows of one second."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from reports.histogram import codec
from reports.slo import Slo
from swarm.clock import NS_PER_S, wall_ns
from swarm.distributed.raw_results import Rows, packed
from users.errors import ErrorKind, RequestError
from users.load.pacing import LATE_NS
from users.result import Result

Key = tuple[str, int, str, int]
"""cell, repeat, phase, second (of the wall clock, in which a Result ended or its images were worked on)"""
OWN = frozenset({"times", "made_in", "classes"})
"""What a Window has for itself, or as a part; the rest is in its record."""
SELDOM = frozenset(
    {"failure_codes", "refused_for", "retry_after", "retry_after_s", "cache_hits", "cache_queries"}
)
"""What a record has only where there is some: few windows have refusals, or headers of caches."""
MILLI = 1_000
SPREAD_S = 60
"""Seconds that a request's images are spread over, at most."""
TRACED_PER_S = 500
"""Requests with a traceparent that all workers together tell of in a second; they only count further ones."""


@dataclass
class ClassWindow:
    """Requests of one class in a Window; `good` ones were within the SLO, None without one."""

    ok: int = 0
    failures: int = 0
    images: int = 0
    good: int | None = None
    latency_ns: array[int] = field(default_factory=lambda: array("q"))
    service_ns: array[int] = field(default_factory=lambda: array("q"))

    def add(self, result: Result) -> None:
        """Count one Result that was not abandoned."""
        if result.error is not None:
            self.failures += 1
            return
        self.ok += 1
        self.images += result.images
        self.latency_ns.append(result.latency_ns)
        self.service_ns.append(result.service_ns)

    def to_record(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        times = {"latency": self.latency_ns, "service_time": self.service_ns} if self.ok else {}
        good = {} if self.good is None else {"good": self.good}
        counts = {"ok": self.ok, "failures": self.failures, "images": self.images, **good}
        return counts | {"histograms": {name: codec.encoded_ns(of)[0] for name, of in times.items()}}


@dataclass
class Window:
    """One second of one run on one worker; until it is closed its times stay plain numbers: that is cheap."""

    ok: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    failure_codes: dict[str, int] = field(default_factory=dict)
    """Failures by HTTP status, gRPC code or the system's name of the error, of those that have one."""
    refused_for: dict[str, int] = field(default_factory=dict)
    """Refusals by what the server's words say is full, of those that say it."""
    retry_after: int = 0
    """Failures with a Retry-After, and their seconds together."""
    retry_after_s: int = 0
    cache_hits: int = 0
    """Successes that a cache answered, as their headers say, and those whose headers say whether one did."""
    cache_queries: int = 0
    abandoned: int = 0
    late: int = 0
    images: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    server_ns: dict[str, int] = field(default_factory=dict)
    server_count: int = 0
    first_start_ns: int = 0
    last_end_ns: int = 0
    silence: tuple[int, int] | None = None
    """The longest time, in ns of the wall clock, for which a request waited and none was answered."""
    spread_milli_images: int = 0
    """Thousandths of images: the share of each success whose request was under way in this second."""
    good: int | None = None
    """Successes within the SLO; None without one."""
    classes: dict[str, ClassWindow] = field(default_factory=dict)
    """By label, where requests are not all alike."""
    made_in: int = 0
    """The second in which it was made: later than its own where a long request's share came late."""
    times: defaultdict[str, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))

    def add(self, result: Result, limit_ns: int | None = None) -> None:
        """Count one Result, which is good where it succeeded within the limit, if there is one."""
        start_ns, end_ns, delay_ns = result.start_ns, result.end_ns, result.send_delay_ns
        if not self.first_start_ns or start_ns < self.first_start_ns:
            self.first_start_ns = start_ns
        if end_ns > self.last_end_ns:
            self.last_end_ns = end_ns
        self.late += delay_ns > LATE_NS
        if result.abandoned:
            self.abandoned += 1
            return
        if result.error is not None:
            self._add_failure(result.error, result.latency_ns)
        else:
            self._add_success(result, delay_ns)
        own = self._class(result) if result.request_class else None
        if limit_ns is not None:
            is_good = result.error is None and result.latency_ns <= limit_ns
            self.good = (self.good or 0) + is_good
            if own:
                own.good = (own.good or 0) + is_good

    def _class(self, result: Result) -> ClassWindow:
        """That of a Result, which is counted in it."""
        own = self.classes.setdefault(result.request_class, ClassWindow())
        own.add(result)
        return own

    def _add_failure(self, error: RequestError, latency_ns: int) -> None:
        kind = error.kind
        self.failures[kind] = self.failures.get(kind, 0) + 1
        if error.code:
            self.failure_codes[error.code] = self.failure_codes.get(error.code, 0) + 1
        if error.refused_for:
            self.refused_for[error.refused_for] = self.refused_for.get(error.refused_for, 0) + 1
        if error.retry_after is not None:
            self.retry_after += 1
            self.retry_after_s += error.retry_after_s
        self.times["timeout" if kind is ErrorKind.TIMEOUT else "failed"].append(latency_ns)

    def _add_success(self, result: Result, delay_ns: int) -> None:
        self.ok += 1
        self.images += result.images
        self.request_bytes += result.request_bytes
        self.response_bytes += result.response_bytes
        times = self.times
        times["latency"].append(result.latency_ns)
        times["service_time"].append(result.service_ns)
        times["send_delay"].append(delay_ns)
        for phase, value_ns in result.phases_ns.items():
            times[phase].append(value_ns)
        if result.from_cache is not None:
            self.cache_queries += 1
            self.cache_hits += result.from_cache
        if result.server_ns:
            self.server_count += 1
            for part, value_ns in result.server_ns.items():
                self.server_ns[part] = self.server_ns.get(part, 0) + value_ns

    def to_record(self, key: Key) -> dict[str, Any]:
        """As the ledger keeps it; the master adds which worker it came from."""
        cell, repeat, phase, second = key
        encoded = {name: codec.encoded_ns(values) for name, values in self.times.items()}
        record = {"kind": "window", "cell": cell, "repeat": repeat, "phase": phase, "second": second}
        own = {name: of for name, of in vars(self).items() if name not in OWN and of is not None}
        record |= {name: value for name, value in own.items() if value or name not in SELDOM}
        if self.classes:
            record["classes"] = {label: one.to_record() for label, one in self.classes.items()}
        record["connects"] = len(self.times.get("connect", ()))
        if resent := len(self.times.get("resend", ())):
            record["resent"] = resent
        record["histograms"] = {name: text for name, (text, _) in encoded.items()}
        record["out_of_range"] = {name: clamped for name, (_, clamped) in encoded.items() if clamped}
        return record


@dataclass
class PhaseCounts:
    """What came back of one phase so far; `users_ns` has of each user the first start and the last end."""

    ok: int = 0
    failed: int = 0
    abandoned: int = 0
    users_ns: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count one Result."""
        if result.abandoned:
            self.abandoned += 1
            return
        self.ok += result.ok
        self.failed += not result.ok
        first_ns, _ = self.users_ns.get(result.user, (result.start_ns, 0))
        self.users_ns[result.user] = (first_ns, result.end_ns + result.think_ns)

    @property
    def finished(self) -> int:
        """Successes and failures."""
        return self.ok + self.failed

    def spans_ns(self, after: PhaseCounts) -> int:
        """From each user's first start to its first one in the phase `after`, or the end of its last think
        time; all together.

        So each request comes with the user's own time that follows it: a rate over spans that end with a
        request is too high by that time's share of the last one.
        """
        ends_ns = {user: start_ns for user, (start_ns, _) in after.users_ns.items()}
        return sum(ends_ns.get(user, last) - first for user, (first, last) in self.users_ns.items())


class Recorder:
    """Takes Results one by one, gives Windows back when their second is over."""

    def __init__(self) -> None:
        # The wall clock is read once: durations and the order of windows come from the monotonic clock.
        self._anchor_ns = wall_ns() - time.perf_counter_ns()
        self._windows: dict[Key, Window] = {}
        self._raw: list[Result] = []
        self.raw_left = 0
        """How many more raw Results of measure phases to keep for `take_raw`."""
        self._traced: list[Result] = []
        self.traced_per_s = self._traced_left = 0
        """How many Results with a traceparent to keep for `take_traced`, in each second and in this one."""
        self._traced_in, self._untold = -1, 0
        self._answered_ns: dict[str, int] = {}
        """By cell, when the last request of any phase was answered."""
        self._tallies: defaultdict[tuple[str, str], PhaseCounts] = defaultdict(PhaseCounts)
        self._slo: Slo | None = None
        self._limits_ns: dict[str, int] = {}
        """By class, of those that were seen."""

    def begin_study(self, slo: str) -> None:
        """Count the requests that are good by --slo; not where it is empty. Raises ValueError."""
        self._slo, self._limits_ns = Slo.parse(slo) if slo else None, {}

    def begin_cell(self) -> None:
        """Count afresh."""
        self._tallies.clear()
        self._answered_ns.clear()

    def tally(self, cell: str, phase: str) -> PhaseCounts:
        """What came back of the requests that began in a phase of the cell."""
        return self._tallies[cell, phase]

    def add(self, result: Result) -> None:
        """Record one Result."""
        second = self.second(result.end_ns)
        window = self._window(result, second, second)
        window.add(result, self._limit_ns(result.request_class))
        self._note_silence(result, window)
        if result.ok and self.second(result.start_ns) < second:
            self._spread(result, second)
        elif result.ok:
            window.spread_milli_images += MILLI * result.images
        if self.raw_left and result.phase == "measure":
            self._raw.append(result)
            self.raw_left -= 1
        if result.trace_id:
            self._keep_traced(result, second)
        self._tallies[result.cell, result.phase].add(result)

    def _note_silence(self, result: Result, window: Window) -> None:
        """How long nobody was answered until this Result, if that is the longest such time in its window.

        It waited all that time; what was begun earlier and is not answered yet may have waited longer. What
        the client gave up is no answer.
        """
        if result.abandoned or (result.error is not None and result.error.kind is ErrorKind.TIMEOUT):
            return
        end_ns = result.end_ns
        from_ns = max(result.start_ns, self._answered_ns.get(result.cell, 0))
        self._answered_ns[result.cell] = end_ns
        if window.silence is None or end_ns - from_ns > window.silence[1] - window.silence[0]:
            window.silence = from_ns + self._anchor_ns, end_ns + self._anchor_ns

    def _keep_traced(self, result: Result, second: int) -> None:
        if second != self._traced_in:
            self._traced_in, self._traced_left = second, self.traced_per_s
        if self._traced_left:
            self._traced_left -= 1
            self._traced.append(result)
        else:
            self._untold += 1

    def _limit_ns(self, label: str) -> int | None:
        """How long a request of a class may take to be good; None without an SLO."""
        if self._slo is None:
            return None
        limit_ns = self._limits_ns.get(label)
        if limit_ns is None:
            limit_ns = self._limits_ns[label] = self._slo.limit_ns(label)
        return limit_ns

    def _window(self, result: Result, second: int, now: int) -> Window:
        """The window of a Result in that second; made in the second `now` where there is none."""
        key = (result.cell, result.repeat, result.phase, second)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(made_in=now)
        return window

    def _spread(self, result: Result, last: int) -> None:
        """Share a Result's images among the seconds from its start to `last`, by its time in each.

        The shares of one Result add up to its images exactly. Those of seconds whose windows were shipped go
        into further windows of the same seconds, which count nothing else: readers add up all windows of a
        second. Of a request longer than SPREAD_S the share of its earlier seconds is spread evenly over its
        last SPREAD_S.
        """
        total, whole_ns = MILLI * result.images, result.end_ns - result.start_ns
        began_ns, given = result.start_ns + self._anchor_ns, 0
        first = max(began_ns // NS_PER_S, last - SPREAD_S + 1)
        early_ns = max(0, first * NS_PER_S - began_ns)
        for place, second in enumerate(range(first, last + 1), 1):
            passed_ns = min((second + 1) * NS_PER_S - began_ns, whole_ns) - early_ns
            # In whole numbers, and where nothing is earlier as exact as that quotient alone.
            until = total * (passed_ns * SPREAD_S + early_ns * place) // (whole_ns * SPREAD_S)
            self._window(result, second, last).spread_milli_images += until - given
            given = until

    def second(self, at_ns: int) -> int:
        """The wall clock's second at a `perf_counter_ns`."""
        return (at_ns + self._anchor_ns) // NS_PER_S

    def take_closed(self, now_ns: int) -> list[dict[str, Any]]:
        """The records of windows that were made in seconds which ended before `now_ns` (`perf_counter_ns`).

        Late shares of earlier seconds are shipped with them: once a second, however many there are.
        """
        second = self.second(now_ns)
        return [self._take(key) for key in sorted(self._windows) if self._windows[key].made_in < second]

    def take_all(self) -> list[dict[str, Any]]:
        """The records of all windows, the current one too."""
        return [self._take(key) for key in sorted(self._windows)]

    @property
    def raw_waiting(self) -> int:
        """How many raw Results `take_raw` and `take_traced` would give."""
        return len(self._raw) + len(self._traced)

    def take_raw(self) -> list[Rows]:
        """The raw Results kept since the last take, by columns."""
        taken, self._raw = self._raw, []
        return packed(taken, self._anchor_ns)

    def take_traced(self) -> dict[str, Any]:
        """Results with a traceparent since the last take, by columns, of whatever phase, and how many more
        there were; nothing where there were none.
        """
        taken, self._traced = self._traced, []
        untold, self._untold = self._untold, 0
        return {"traced": packed(taken, self._anchor_ns), "untold": untold} if taken or untold else {}

    def _take(self, key: Key) -> dict[str, Any]:
        return self._windows.pop(key).to_record(key)
