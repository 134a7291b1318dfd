"""Which run comes next: of a list that may grow, or of a search that learns; and the time left."""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reports.format import digits, duration, ms
from reports.limit import OF_THE_LOAD
from reports.summary.summary import Summary
from swarm.plan.cell import Cell, PlannedRun, Warm, warmed_by
from swarm.plan.matrix import one_repeat, order
from users.endpoint import NULL

NAME_WIDTH = 24
FIXED, WARM_UP, SECOND = 30, 160, 13
"""What each run costs beside its requests, a warm-up, and a second, in images; used only for the estimate."""


class Schedule(ABC):
    """Which run comes next; it may depend on what came of the last one."""

    planned: Sequence[PlannedRun] = ()
    """The runs that are certain to come, for the header and for the time left; empty if none.

    More may be added at the end.
    """

    @abstractmethod
    def next(self, outcomes: Sequence[Outcome]) -> Sequence[PlannedRun]:
        """The next run after the last one's outcome, or several for the same time; none at the end."""

    def remark(self, outcome: Outcome) -> str:
        """What a run's line on the console is to add: nothing."""
        return ""


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its Summary, as its report will have it, or None where that cannot be told."""

    run: PlannedRun
    summary: Summary | None


class RepeatingSchedule(Schedule):
    """`repeats` of some cells, then more, one by one, up to `most` of them: none, where there are as many.

    `is_wanted` is asked at the end of a repeat whether there is to be another one; it is told that one's
    number, and how many there may be from it on.
    """

    def __init__(
        self, cells: list[Cell], repeats: int, most: int, seed: int, is_wanted: Callable[[int, int], bool]
    ) -> None:
        self._cells, self._repeats, self._most, self._seed = cells, repeats, most, seed
        self._is_wanted = is_wanted
        self._begun = 0
        self.planned: list[PlannedRun] = order(cells, repeats, seed)

    def next(self, outcomes: Sequence[Outcome]) -> Sequence[PlannedRun]:
        """The next of the repeat, or of one more."""
        if self._begun == len(self.planned):
            self._repeat()
        found = list(itertools.takewhile(self._at_once, self.planned[self._begun :]))
        self._begun += len(found)
        return found

    def _at_once(self, run: PlannedRun) -> bool:
        """Whether a run is the next, or one for the same time."""
        first = self.planned[self._begun]
        alike = (run.cell.together, run.repeat) == (first.cell.together, first.repeat)
        return run is first or (alike and bool(run.cell.together))

    def _repeat(self) -> None:
        number = self._repeats + 1
        if number <= self._most and self._is_wanted(number, self._most - self._repeats):
            self._repeats = number
            self.planned += one_repeat(self._cells, number, self._seed)


class Pace:
    """How fast a study goes; `planned` may grow, and is empty where nobody knows how many runs come."""

    def __init__(self, planned: Sequence[PlannedRun], clock: Callable[[], float]) -> None:
        self._planned, self._clock = planned, clock
        self._began = clock()
        self._done = 0

    def announcement(self, run: PlannedRun) -> str:
        """What a run of a search is about to do: its many requests at a low rate take minutes."""
        cell = run.cell
        takes = duration(max(cell.seconds, cell.requests / cell.level))
        return f"{'confirming' if run.confirming else 'trying'} {cell.name}: {takes} after its warm-up"

    def line(self, outcome: Outcome) -> str:
        """What one more run came to, and the time left if the rest goes at the pace so far."""
        self._done += 1
        costs = costs_of([run.to_record() for run in self._planned])
        done, to_do = sum(costs[: self._done]), sum(costs[self._done :])
        left_s = (self._clock() - self._began) * to_do / max(1, done)
        names = [len(run.cell.name) for run in self._planned]
        return line(self._done, len(self._planned), outcome, left_s, max(names, default=NAME_WIDTH))


def costs_of(plan: Sequence[Mapping[str, Any]]) -> list[int]:
    """How long each run of a plan takes, in arbitrary units: by its seconds or its images; some warm up."""
    pairs = zip(plan, warm_ups(plan), strict=True)
    each = [FIXED + WARM_UP * warms + _measuring(entry) for entry, warms in pairs]
    return list(map(int, once_a_group(plan, each)))


def _measuring(entry: Mapping[str, Any]) -> float:
    """A rate takes its time; users may take longer than they have to, by their images."""
    requests, seconds = int(entry.get("requests") or 0), float(entry.get("seconds") or 0)
    if entry["load"] == "open":
        return SECOND * max(seconds, requests / float(entry["level"]))
    return max(SECOND * seconds, int(entry["batch"]) * requests)


def once_a_group(plan: Iterable[Mapping[str, Any]], each: Iterable[float]) -> list[float]:
    """What each run of a plan takes: the first of a group what its longest takes, the others nothing."""
    groups = groupby(zip(plan, each, strict=True), key=lambda pair: _group(pair[0]))
    found: list[float] = []
    for (text, _), of in groups:
        costs = [cost for _, cost in of]
        found += [max(costs), *[0] * (len(costs) - 1)] if text else costs
    return found


def _group(entry: Mapping[str, Any]) -> tuple[str, Any]:
    return entry.get("together") or "", entry.get("repeat")


def warm_ups(plan: Iterable[Mapping[str, Any]]) -> Iterator[bool]:
    """Whether each run of a plan warms its server up: the first of what is warm then, and after a reload."""
    warm, settings = set[Warm](), dict[str, tuple[Any, Any]]()
    for entry in plan:
        key = warmed_by(entry)
        if entry["backend"] != NULL:  # a null model has no settings
            server, asked = key[0], (entry.get("queue_delay_us"), entry.get("instances"))
            if settings.get(server, asked) != asked:
                warm = {known for known in warm if known[0] != server}
            settings[server] = asked
        yield key not in warm
        warm.add(key)


def remaining(seconds: float) -> str:
    """`42s`, `3m05s`, `2h10m`.

    >>> remaining(185)
    '3m05s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def line(number: int, total: int, outcome: Outcome, left_s: float, name_width: int = NAME_WIDTH) -> str:
    """`[ 3/20] onnx-grpc/b4/c1  13.3 img/s  p50 71.0  p95 123 ms  server-compute  2m53s left`."""
    width = len(str(total))
    count = f"{number:{width}}/{total}" if total else f"{number:3}"
    told = [f"[{count}] {outcome.run.cell.name:<{name_width}}", *_figures(outcome.summary)]
    return "  ".join([*told, f"{remaining(left_s)} left"] if number < total else told)


def _figures(found: Summary | None) -> Iterator[str]:
    """Throughput, latency, what went wrong, and the bottleneck."""
    if found is None or not found.succeeded:
        yield "no successful request"
    else:
        p50, p95 = ms(found.latency.p50_ns), ms(found.latency.p95_ns)
        yield f"{digits(found.counts.images_per_s or 0.0):>5} img/s  p50 {p50:>5}  p95 {p95:>5} ms"
    if found and found.counts.failures:
        yield f"{found.counts.failures} FAILED"
    if found and found.sent.dropped:
        yield f"{found.sent.dropped} DROPPED"
    if found and found.limit:
        yield found.limit.code


RED, YELLOW, DIM, RESET = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_FAULT = re.compile(r"\d+ (?:FAILED|DROPPED)|no successful request")
_ROOM = "|".join(sorted(OF_THE_LOAD))
_LIMIT = re.compile(rf"(?<=  )(?!(?:{_ROOM})\b)[a-z]+(?:-[a-z]+)*(?=  \S+ left$|$)")
_LEFT = re.compile(r"\S+ left$")


def painted(text: str) -> str:
    """A line of progress for a terminal: faults red, the bottleneck yellow, the time left dim."""
    for pattern, colour in ((_FAULT, RED), (_LIMIT, YELLOW), (_LEFT, DIM)):
        text = pattern.sub(rf"{colour}\g<0>{RESET}", text)
    return text
