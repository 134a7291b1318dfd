"""The runs under way, summed up as in their report: Summaries at any time, seconds once they are whole.

This is the one fold of a running study. Events, and so the live page and Prometheus, and early stops are told
its seconds; the conductor asks how its phase goes, and at last for its Summary.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from reports.fold.records import epoch_s
from reports.fold.run_records import Bins, RunRecords, Second, planned_of
from reports.fold.timeline import TimelineSecond, second_of
from reports.fold.windows import Results
from reports.ledger.ledger import DAMAGED, Record, Tag, tag_of
from reports.study.summarise import summarise
from reports.summary.summary import Summary

AT_ONCE = 200
"""Records added in one go: few enough that the master is never blocked for long."""
LOOK_S = 0.2
"""Seconds between checks for complete seconds."""
WAIT_S = 10.0
"""A second is published this long after its last record; a worker silent for this long is not waited for."""
KEPT = 120
"""Seconds kept after they were published: later records still update them."""
LATEST = 60
"""Seconds of a phase that a verdict looks back at, at most."""
OF_SECONDS = frozenset({"window", "health", "sample"})
PER_EXECUTION = frozenset({"compute_ns", "executions"})
SAMPLER = ""
"""The sender of samples, among the names of workers."""


@dataclass(frozen=True)
class LiveSecond:
    """One second of the run under way, `at` in Unix time: what clients did `here`, and its sample.

    `revision` counts how often it was told before; `sample` is None where it has none, or it was told before.
    `began` is the study's first second.
    """

    run: RunRecords
    at: int
    revision: int
    here: Second
    sample: Record | None
    began: int

    @property
    def row(self) -> TimelineSecond:
        """Its row in timeline.csv, as it stands now; of a thousand workers it takes its time."""
        run, samples = self.run, self.run.samples
        phases, known = run.of_kind("phase"), samples.of_server
        return second_of(
            run.planned, self.at, phases, self.here, samples.spans, began=self.began, of_server=known
        )


class FollowedRun:
    """One run: its records so far, and how the phase that it is in goes."""

    def __init__(self, planned: Record, workers: Iterable[str], now: float) -> None:
        self.records = RunRecords(planned_of(planned), Bins(1, 0), at_once=AT_ONCE, of_second=None)
        self.seconds = PendingSeconds()
        self.seconds.heard_of(workers, now)
        self.is_over = False
        self._summary: Summary | None = None
        """Of the records so far, once requested."""
        self._phase = ""
        self._first, self._last = dict[str, int](), dict[str, int]()
        """Each worker's first second in the phase, and its last complete one."""

    def add(self, record: Record) -> None:
        """Takes in one of its records."""
        self.records.add(record)
        self._summary = None
        kind = record["kind"]
        if kind == "phase":
            self._phase, self._first, self._last = record["phase"], {}, {}
        elif kind in ("window", "health") and record["phase"] == self._phase:
            self._first.setdefault(record["worker"], record["second"])
            if kind == "health":
                self._last[record["worker"]] = record["second"]

    def summary(self, header: Record) -> Summary | None:
        """Of its records so far; None where they are of no run."""
        if self._summary is None:
            # What raises here the report will refuse, too.
            with suppress(*DAMAGED):
                self._summary = summarise(self.records.settled(), header)
        return self._summary

    @property
    def complete(self) -> range:
        """The seconds of the phase under way that every worker has told all of, without the first."""
        first, last = max(self._first.values(), default=0), min(self._last.values(), default=0)
        return range(first + 1, last + 1)

    @property
    def latest(self) -> list[Results]:
        """What came back in the latest of them."""
        seconds = self.records.settled().seconds
        found = (seconds.get(at) or Second() for at in self.complete[-LATEST:])
        return [second.results.get(self._phase) or Results() for second in found]

    @property
    def compute_ns(self) -> list[float]:
        """The server's compute time per execution in the latest seconds of the phase in which it had any.

        Nothing of a server that does not tell both.
        """
        spans = self.records.settled().samples.spans
        found = [sample for at in sorted(spans)[-LATEST:] for sample in spans[at]]
        told = [sample.get("server") or {} for sample in found if sample["phase"] == self._phase]
        return [
            (after["compute_ns"] - before["compute_ns"]) / executions
            for before, after in pairwise(counters for counters in told if counters.keys() >= PER_EXECUTION)
            if (executions := after["executions"] - before["executions"]) > 0
        ]


class RunFold:
    """Follows the ledgers of those studies that it is told to, run by run; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._header: Record = {}
        self._began = 0
        self.plan: list[Record] = []
        """All runs known so far."""
        self._runs: dict[Tag, FollowedRun] = {}
        """Those under way, and those that ended last."""
        self._looked = 0.0
        self.late = 0
        """Records that came after their run was over, or after their second was dropped."""
        self.listeners: list[Callable[[LiveSecond], None]] = []
        """Called with each second of a run once it is complete, and again if more records arrive."""

    def follow(self, header: Record) -> None:
        """The records of this study come next."""
        self.forget()
        self._header, self.plan = header, [*header["plan"]]
        self._began, self.late = int(epoch_s(header["started_utc"])), 0

    def finish(self) -> None:
        """The study is over: what still waits is told, and nothing is followed until the next one."""
        for run in self._runs.values():
            self._tell(run, run.seconds.all())
        self.forget()

    def forget(self) -> None:
        """Nothing is followed until the next study."""
        self._header, self._runs = {}, {}

    def on_record(self, record: Record) -> None:
        """Any record of the ledger, as it is written."""
        if not self._header:
            return
        if record["kind"] == "plan":
            self.plan += record["runs"]
        elif record["kind"] == "run" and record["event"] == "start":
            self._begin(record)
        if "repeat" in record:
            self._take(record)

    def of(self, tag: Tag) -> FollowedRun | None:
        """A run under way, or one that ended last; None of any other."""
        return self._runs.get(tag)

    def summary(self, tag: Tag) -> Summary | None:
        """Of such a run; None of any other, and where its records are of no run."""
        run = self._runs.get(tag)
        return run.summary(self._header) if run else None

    def _begin(self, record: Record) -> None:
        planned = next((entry for entry in self.plan if tag_of(entry) == tag_of(record)), None)
        if planned is None:
            raise ValueError(f"{record['cell']} was not planned")
        for tag in [tag for tag, run in self._runs.items() if run.is_over]:
            run = self._runs.pop(tag)
            self._tell(run, run.seconds.all())
        self._runs[tag_of(record)] = FollowedRun(planned, record["workers"], self._clock())

    def _take(self, record: Record) -> None:
        run, kind, now = self._runs.get(tag_of(record)), record["kind"], self._clock()
        if run is None:
            self.late += kind in OF_SECONDS
            return
        run.add(record)
        if kind in OF_SECONDS and not run.seconds.add(record, now):
            self.late += 1
        if kind == "run" and record["event"] == "end":
            run.is_over = True
            self._tell(run, run.seconds.all())
        elif now - self._looked >= LOOK_S:
            self._looked = now
            for each in self._runs.values():
                self._tell(each, each.seconds.whole(now))

    def _tell(self, run: FollowedRun, seconds: Sequence[int]) -> None:
        records = run.records
        if seconds:
            records.settled()
        for at in seconds:
            here, sample = records.seconds.get(at) or Second(), run.seconds.samples.pop(at, None)
            second = LiveSecond(records, at, run.seconds.tell(at), here, sample, self._began)
            for listener in self.listeners:
                listener(second)
        for at in run.seconds.let_go():
            records.close(at)
            records.settled().seconds.pop(at, None)
            records.samples.spans.pop(at, None)


class PendingSeconds:
    """Which seconds of a run wait to be told, and which were."""

    def __init__(self) -> None:
        self.samples: dict[int, Record] = {}
        """Of the waiting records."""
        self._waiting: dict[int, float] = {}
        """When the last record of each second arrived."""
        self._told: dict[int, int] = {}
        """How often each second was published, the first published first."""
        self._held: dict[int, None] = {}
        self._latest: dict[str, int] = {}
        self._heard: dict[str, float] = {}

    def heard_of(self, workers: Iterable[str], now: float) -> None:
        """These will tell of every second."""
        for worker in workers:
            self._latest[worker], self._heard[worker] = 0, now

    def add(self, record: Record, now: float) -> bool:
        """Take note of a record; whether its second can still be told."""
        at, who = record["second"], record.get("worker", SAMPLER)
        self._latest[who], self._heard[who] = max(at, self._latest.get(who, 0)), now
        if at in self._told and at not in self._held:
            return False
        if record["kind"] == "sample":
            self.samples[at] = record
        self._waiting[at] = now
        return True

    def whole(self, now: float) -> list[int]:
        """Those of which all workers and the sampler have told, or that waited long enough; in order."""
        alive = [who for who, heard in self._heard.items() if now - heard < WAIT_S]
        told = min((self._latest[who] for who in alive), default=0)
        return [at for at in sorted(self._waiting) if at < told or now - self._waiting[at] >= WAIT_S]

    def all(self) -> list[int]:
        """Every second that waits, in order: nothing more is to come."""
        return sorted(self._waiting)

    def tell(self, at: int) -> int:
        """A second is told: how often it was before."""
        del self._waiting[at]
        before = self._told.get(at, 0)
        self._told[at] = before + 1
        self._held[at] = None
        return before

    def let_go(self) -> Iterator[int]:
        """The seconds that are held no more: those that were told first, once there are more than KEPT."""
        for at in list(self._held)[: max(0, len(self._held) - KEPT)]:
            del self._held[at]
            yield at
