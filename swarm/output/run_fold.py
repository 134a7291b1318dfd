"""The current run, summed up as in its report: its Summary at any time, its seconds once they are whole.

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
from reports.ledger.ledger import DAMAGED, Record, tag_of
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


class RunFold:
    """Follows the ledgers of those studies that it is told to, run by run; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._header: Record = {}
        self._began = 0
        self.plan: list[Record] = []
        """All runs known so far."""
        self._run: RunRecords | None = None
        self._summary: Summary | None = None
        """Of the records so far, once requested."""
        self._seconds = PendingSeconds()
        self._phase = ""
        self._first, self._last = dict[str, int](), dict[str, int]()
        """Each worker's first second in the phase, and its last complete one."""
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
        if self._run is not None:
            self._tell(self._run, self._seconds.all())
        self.forget()

    def forget(self) -> None:
        """Nothing is followed until the next study."""
        self._header, self._run, self._summary = {}, None, None
        self._first, self._last = {}, {}

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

    def summary(self) -> Summary | None:
        """Of the last run that has begun; None before the first, and where its records are of no run."""
        if self._run is not None and self._summary is None:
            # What raises here the report will refuse, too.
            with suppress(*DAMAGED):
                self._summary = summarise(self._run.settled(), self._header)
        return self._summary

    @property
    def complete(self) -> int:
        """How many seconds of the phase under way every worker has told all of, the first not counted."""
        return len(self._complete)

    @property
    def _complete(self) -> range:
        first, last = max(self._first.values(), default=0), min(self._last.values(), default=0)
        return range(first + 1, last + 1)

    @property
    def latest(self) -> list[Results]:
        """What came back in the latest of them."""
        seconds = self._run.settled().seconds if self._run else {}
        found = (seconds.get(at) or Second() for at in self._complete[-LATEST:])
        return [second.results.get(self._phase) or Results() for second in found]

    @property
    def compute_ns(self) -> list[float]:
        """The server's compute time per execution in the latest seconds of the phase in which it had any."""
        spans = self._run.settled().samples.spans if self._run else {}
        found = [sample for at in sorted(spans)[-LATEST:] for sample in spans[at]]
        told = [sample.get("server") or {} for sample in found if sample["phase"] == self._phase]
        return [
            (after["compute_ns"] - before["compute_ns"]) / executions
            for before, after in pairwise(counters for counters in told if "compute_ns" in counters)
            if (executions := after["executions"] - before["executions"]) > 0
        ]

    def _begin(self, record: Record) -> None:
        planned = next((entry for entry in self.plan if tag_of(entry) == tag_of(record)), None)
        if planned is None:
            raise ValueError(f"{record['cell']} was not planned")
        if self._run is not None:
            self._tell(self._run, self._seconds.all())
        self._run = RunRecords(planned_of(planned), Bins(1, 0), at_once=AT_ONCE, of_second=None)
        self._phase, self._first, self._last = "", {}, {}
        self._seconds = PendingSeconds()
        self._seconds.heard_of(record["workers"], self._clock())

    def _take(self, record: Record) -> None:
        run, kind, now = self._run, record["kind"], self._clock()
        if run is None or tag_of(record) != tag_of(run.planned):
            self.late += kind in OF_SECONDS
            return
        run.add(record)
        self._summary = None
        self._note_phase(record)
        if kind in OF_SECONDS and not self._seconds.add(record, now):
            self.late += 1
        if kind == "run" and record["event"] == "end":
            self._tell(run, self._seconds.all())
        elif now - self._looked >= LOOK_S:
            self._looked = now
            self._tell(run, self._seconds.whole(now))

    def _note_phase(self, record: Record) -> None:
        kind = record["kind"]
        if kind == "phase":
            self._phase, self._first, self._last = record["phase"], {}, {}
        elif kind in ("window", "health") and record["phase"] == self._phase:
            self._first.setdefault(record["worker"], record["second"])
            if kind == "health":
                self._last[record["worker"]] = record["second"]

    def _tell(self, run: RunRecords, seconds: Sequence[int]) -> None:
        if seconds:
            run.settled()
        for at in seconds:
            here, sample = run.seconds.get(at) or Second(), self._seconds.samples.pop(at, None)
            second = LiveSecond(run, at, self._seconds.tell(at), here, sample, self._began)
            for listener in self.listeners:
                listener(second)
        for at in self._seconds.let_go():
            run.close(at)
            run.settled().seconds.pop(at, None)
            run.samples.spans.pop(at, None)


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
