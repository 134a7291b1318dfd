"""A run whose load had a course: its stages and seconds, and the replicas that Kubernetes had in each."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reports.fold.records import epoch_s
from reports.fold.run_records import RunRecords
from reports.fold.windows import Results
from reports.histogram.buckets import Buckets, together
from reports.histogram.percentiles import told_percentiles_ns

Stated = Mapping[str, Any]
AFTER = "after"


@dataclass(frozen=True)
class CourseStage:
    """Seconds from `begin_s` on, in a straight line from one rate in 1/s, or number of users, to another."""

    name: str
    begin_s: float
    seconds: float
    first: float
    last: float

    @property
    def end_s(self) -> float:
        """When the next begins."""
        return self.begin_s + self.seconds

    @property
    def asked(self) -> float:
        """Its mean."""
        return (self.first + self.last) / 2

    def arrivals(self, from_s: float, to_s: float) -> float:
        """The integral of it over the part of a span that lies in it."""
        low, high = max(from_s, self.begin_s), min(to_s, self.end_s)
        middle = ((low + high) / 2 - self.begin_s) / self.seconds
        return max(0.0, high - low) * (self.first + (self.last - self.first) * middle)


def stages_of(planned: Iterable[Sequence[Any]]) -> tuple[CourseStage, ...]:
    """The stages of a plan, each with its beginning."""
    found, begin_s = [], 0.0
    for name, seconds, first, last in planned:
        found.append(CourseStage(name, begin_s, seconds, first, last))
        begin_s += seconds
    return tuple(found)


@dataclass(frozen=True)
class Moment:
    """One second (or `width_s` of them) of the measure phase; `s` counts from the load's beginning.

    Requests are those that ended in it. `asked` is what the course says, a rate or a number of users,
    whatever was sent. `stated` is what Kubernetes said at its end, under the ledger's names.
    """

    s: float
    width_s: int
    asked: float
    ok: int
    failures: int
    latency: Buckets
    stated: Stated

    @property
    def end_s(self) -> float:
        """When it was over, and `stated` read."""
        return self.s + self.width_s

    @property
    def served_per_s(self) -> float:
        """Successes."""
        return self.ok / self.width_s

    @property
    def failures_per_s(self) -> float:
        """Requests that ended wrong."""
        return self.failures / self.width_s


@dataclass(frozen=True)
class StageSeen:
    """What came of a stage, or of all that have its name; percentiles are of the requests that ended in it.

    `replicas` are those ready. Of several stages `stage` has the seconds together, the lowest and highest.
    """

    stage: CourseStage
    ok: int
    failures: int
    dropped: int
    p50_ns: float | None
    p95_ns: float | None
    replicas: tuple[int, int] | None
    cpu_pct: float | None


@dataclass(frozen=True)
class Change:
    """So many replicas became others at `at_s`, or were asked to; `reached_s` is when they were ready."""

    at_s: float
    before: int
    after: int
    reached_s: float | None = None


@dataclass(frozen=True)
class CourseRun:
    """One run, in order. `dropped_by_s` counts arrivals that were never sent by when they were due."""

    cell: str
    repeat: int
    endpoint: str
    stages: tuple[CourseStage, ...]
    moments: tuple[Moment, ...]
    dropped_by_s: Mapping[int, int] = field(default_factory=dict)
    load: str = "open"

    @property
    def watched(self) -> bool:
        """Whether Kubernetes was asked."""
        return any("ready_replicas" in moment.stated for moment in self.moments)

    @cached_property
    def tail(self) -> CourseStage:
        """The time after the last stage, in which what was under way came to its end."""
        end_s = self.stages[-1].end_s
        last_s = max((one.end_s for one in self.moments), default=end_s)
        return CourseStage(AFTER, end_s, max(0.0, last_s - end_s), 0.0, 0.0)

    @cached_property
    def seen(self) -> tuple[StageSeen, ...]:
        """Each stage, those of one name together, and the time after them where anything ended there."""
        by_name = dict[str, list[CourseStage]]()
        for stage in self.stages:
            by_name.setdefault(stage.name, []).append(stage)
        after = self._seen([self.tail])
        return (*map(self._seen, by_name.values()), *([after] if after.ok or after.failures else []))

    @cached_property
    def ready(self) -> tuple[Change, ...]:
        """When other numbers of replicas were ready."""
        return tuple(changes(self.moments, "ready_replicas"))

    @cached_property
    def desired(self) -> tuple[Change, ...]:
        """When other numbers were asked for, and from when on so many were ready."""
        return tuple(
            Change(one.at_s, one.before, one.after, self._reached(one))
            for one in changes(self.moments, "desired_replicas")
        )

    def stage_at(self, s: float) -> CourseStage:
        """The stage of a moment; the first before all."""
        at = bisect_right(self._ends_s, s)
        return self.stages[at] if at < len(self.stages) else self.tail

    @cached_property
    def _ends_s(self) -> list[float]:
        return [stage.end_s for stage in self.stages]

    @cached_property
    def _of_moments(self) -> list[CourseStage]:
        """The stage of each moment: that of its middle."""
        return [self.stage_at(one.s + one.width_s / 2) for one in self.moments]

    def first(self, holds: str, least: float) -> float | None:
        """When what is `stated` under a name first came to so much; None where it never did."""
        found = (one.end_s for one in self.moments if (one.stated.get(holds) or 0) >= least)
        return next(found, None)

    def _reached(self, change: Change) -> float | None:
        """When as many were ready as that change asked for, or as few."""
        up = change.after > change.before
        for moment in self.moments:
            ready = moment.stated.get("ready_replicas")
            if ready is None or moment.end_s < change.at_s:
                continue
            if ready >= change.after if up else ready <= change.after:
                return moment.end_s
        return None

    def _seen(self, stages: Sequence[CourseStage]) -> StageSeen:
        of = set(map(id, stages))
        inside = [one for one, stage in zip(self.moments, self._of_moments, strict=True) if id(stage) in of]
        p50_ns, p95_ns = told_percentiles_ns(together(one.latency for one in inside), [50.0, 95.0])
        ready = known(one.stated.get("ready_replicas") for one in inside)
        dropped = (n for s, n in self.dropped_by_s.items() if id(self.stage_at(s + 0.5)) in of)
        return StageSeen(
            stage=stages[0] if len(stages) == 1 else _merged(stages),
            ok=sum(one.ok for one in inside),
            failures=sum(one.failures for one in inside),
            dropped=sum(dropped),
            p50_ns=p50_ns,
            p95_ns=p95_ns,
            replicas=(min(ready), max(ready)) if ready else None,
            cpu_pct=max(known(one.stated.get("cpu_pct_of_request") for one in inside), default=None),
        )


def course_of(run: RunRecords) -> CourseRun | None:
    """The run, as its course went; None where its load had no course, or its measure phase never began."""
    planned, measures = run.planned, [line for line in run.of_kind("phase") if line["phase"] == "measure"]
    stages = stages_of(planned["stages"])
    if not measures or not stages:
        return None
    began_s = measures[-1].get("start_utc_ns", 0) / 1e9 or epoch_s(measures[-1]["utc"])
    dropped: Counter[int] = Counter()
    for line in run.measured("drained"):
        dropped.update(dict(line.get("dropped_by_s") or ()))
    moments = tuple(moments_of(run, began_s, stages))
    return CourseRun(
        *(planned["cell"], planned["repeat"], planned["endpoint"], stages, moments, dropped, planned["load"])
    )


def _merged(stages: Sequence[CourseStage]) -> CourseStage:
    ends = [end for stage in stages for end in (stage.first, stage.last)]
    seconds = sum(stage.seconds for stage in stages)
    return CourseStage(stages[0].name, stages[0].begin_s, seconds, min(ends), max(ends))


def moments_of(run: RunRecords, began_s: float, stages: Sequence[CourseStage]) -> Iterable[Moment]:
    """Every second with a record of the measure phase, in order."""
    results = {at: here.results["measure"] for at, here in run.seconds.items() if "measure" in here.results}
    spans = run.samples.spans.items()
    samples = {at: one for at, some in spans for one in some if one["phase"] == "measure"}
    width_s, ends_s = run.bins.width_s, [stage.end_s for stage in stages]
    for second in sorted({*results, *samples}):
        here, s = results.get(second, Results()), second - began_s
        inside = stages[bisect_right(ends_s, s) : bisect_left(ends_s, s + width_s) + 1]
        arrivals = sum(stage.arrivals(s, s + width_s) for stage in inside)
        yield Moment(
            s=s,
            width_s=width_s,
            asked=arrivals / width_s,
            ok=here.ok,
            failures=here.failures,
            latency=here.histogram("latency"),
            stated=samples.get(second, {}),
        )


def changes(moments: Iterable[Moment], name: str) -> Iterable[Change]:
    """When what is `stated` under a name became something else; seconds without a word are passed over."""
    last: int | None = None
    for moment in moments:
        now = moment.stated.get(name)
        if now is None:
            continue
        if last is not None and now != last:
            yield Change(moment.end_s, last, now)
        last = now


def known(values: Iterable[Any]) -> list[Any]:
    """Those that are not None."""
    return [value for value in values if value is not None]
