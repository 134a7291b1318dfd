"""The runs of a study: what was planned of each, and what the ledger has of it, added up while it is read."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Self

from reports.fold.health import Health, Shown
from reports.fold.path import PathRecords
from reports.fold.records import LastWords, grouped, readable
from reports.fold.samples import Samples
from reports.fold.windows import Results, Silences, Windows, class_results
from reports.histogram.codec import Room
from reports.ledger.axes import planned_axes
from reports.ledger.ledger import Extent, Outline, Record, Tag, records_of_runs, refused_line, tag_of
from reports.ledger.records import LATER, MOST_RUNS, MOST_WORKERS, PLANNED, check_planned

DAMAGED = "ledger-damaged"
OF_IDLE = ("health", "path")
"""What older programs also wrote of workers that had nothing to do, by the cell of the study before."""
SUMMED = ("window", "health", "path", "sample")
AT_ONCE = 4_000
"""Records that wait to be added up: histograms are decoded faster many at once."""
SHOWN = frozenset({"latency"})
"""The histogram of a second, and of a worker, that is shown."""


@dataclass(frozen=True)
class Bins:
    """Spans of so many seconds; one begins at `origin`, the first second of the study."""

    width_s: int
    origin: int

    def start(self, second: int) -> int:
        """The first second of the span that a second lies in."""
        return second - (second - self.origin) % self.width_s

    def seconds(self, start: int) -> range:
        """Those of the span that begins at `start`."""
        return range(start, start + self.width_s)


@dataclass
class Second:
    """What clients did in one second, or in a span of several; results by the phase they ended in."""

    results: dict[str, Results] = field(default_factory=dict)
    health: Health = field(default_factory=Health)
    phases: set[str] = field(default_factory=set)
    names: Set[str] | None = SHOWN
    """The histograms that are kept, all where it is None."""
    closed: Shown | None = None

    @property
    def shown(self) -> Shown:
        """What a timeline shows of the workers' health."""
        return self.closed or self.health.shown

    def close(self) -> None:
        """Nothing more comes: what each worker said is let go."""
        self.closed, self.health = self.shown, Health()

    def add(self, records: Sequence[Record]) -> None:
        """Takes in records of workers, whose histograms are decoded."""
        windows = [record for record in records if record["kind"] == "window"]
        for phase, some in grouped(windows, "phase").items():
            self.results.setdefault(phase, Results(self.names)).add(some)
        self.health.add([record for record in records if record["kind"] == "health"])
        self.phases |= {record["phase"] for record in records}


class RunRecords:
    """One execution of one cell: its plan, and its records, added up; their histograms are decoded.

    Whole are kept the few that a run has once. Of all others there are sums of the measure phase and of every
    span of the timeline, which keep the histograms `of_second`. They are read once it is `settled`.
    """

    def __init__(
        self,
        planned: Mapping[str, Any],
        bins: Bins = Bins(1, 0),
        room: Room | None = None,
        at_once: int = AT_ONCE,
        of_second: Set[str] | None = SHOWN,
    ) -> None:
        self.planned = planned
        self.bins = bins
        self.kinds: dict[str, list[Record]] = defaultdict(list)
        self.windows, self.workers = Windows(), dict[str, Windows]()
        """Of the measure phase: all together, and each worker's own."""
        self.classes = dict[str, Results]()
        """Of the measure phase, by class, where requests are not all alike."""
        self.health, self.path = Health(), PathRecords()
        self.silences = Silences()
        self.in_flight = LastWords("in_flight")
        self.samples = Samples()
        self.seconds = defaultdict[int, Second](lambda: Second(names=of_second))
        self._room, self._at_once = room, at_once
        self._waiting: list[Record] = []
        self._whole: list[int] = []

    def of_kind(self, kind: str) -> Sequence[Record]:
        """Its records of a kind that is kept whole."""
        return self.kinds.get(kind, ())

    def measured(self, kind: str) -> list[Record]:
        """Those that belong to the measure phase."""
        return [record for record in self.of_kind(kind) if record["phase"] == "measure"]

    @property
    def drained(self) -> list[Record]:
        """What workers said at the end of the measure phase; one that failed to drain says only its error."""
        return [record for record in self.measured("drained") if "error" not in record]

    def add(self, record: Record) -> None:
        """Takes in one record."""
        self._waiting.append(record)
        if len(self._waiting) >= self._at_once:
            self.settled()

    def close(self, span: int) -> None:
        """No record of the span that begins at this second comes any more."""
        self._whole.append(span)

    def settled(self) -> Self:
        """Itself, once all that waits is added up."""
        found: dict[str, list[Record]] = defaultdict(list)
        told, self._waiting = readable(self._waiting, self._room), []
        for record in told:
            found[record["kind"]].append(record)
        windows, health, path, samples = (found.pop(kind, []) for kind in SUMMED)
        self._add_measured(*(of_measure(records) for records in (windows, health, path)))
        spans: dict[int, list[Record]] = defaultdict(list)
        for record in (*windows, *health):
            spans[self.bins.start(record["second"])].append(record)
        for at, some in spans.items():
            self.seconds[at].add(some)
        for sample in interned(samples):
            self.samples.add(sample, self.bins.start(sample["second"]))
        for kind, records in found.items():
            self.kinds[kind] += map(interned, records)
        self._close()
        return self

    def _close(self) -> None:
        for span in self._whole:
            seconds = self.bins.seconds(span)
            if span in self.seconds:
                self.seconds[span].close()
            self.samples.close(span, self.bins.width_s)
            self.in_flight.close(seconds)
            self.path.close(seconds)
        self._whole = []

    def _add_measured(self, windows: list[Record], health: list[Record], path: list[Record]) -> None:
        self.windows.add(windows)
        self.silences.add(windows)
        for label, found in class_results(windows).items():
            self.classes.setdefault(label, Results()).merge(found)
        for worker, some in grouped(windows, "worker").items():
            self.workers.setdefault(worker, Windows(SHOWN)).add(some)
        self.health.add(health)
        for record in health:
            self.in_flight.add(record)
        self.path.add(path)


def of_measure(records: Sequence[Record]) -> list[Record]:
    """Those of the measure phase."""
    return [record for record in records if record["phase"] == "measure"]


def interned(value: Any) -> Any:
    """The same with each text once in memory: so the names of fields, which JSON makes anew for each line."""
    if isinstance(value, dict):
        return {intern(name): interned(of) for name, of in value.items()}
    if isinstance(value, list):
        return [interned(of) for of in value]
    return intern(value) if isinstance(value, str) else value


def whole_plan(found: Outline) -> list[Record]:
    """The header's plan and what was planned later, as a search for a rate does, in order.

    KeyError or ValueError where an entry is not what a plan holds, or plans what another one does.
    """
    later = (entry for record in found.of_kind("plan") for entry in record["runs"])
    plan = [*found.header["plan"], *later]
    if len(plan) > MOST_RUNS:
        raise ValueError(f"{len(plan):,} runs are planned, and a study has {MOST_RUNS:,} at most")
    tags = set[Tag]()
    for entry in plan:
        check_planned(entry)
        if (tag := tag_of(entry)) in tags:
            raise ValueError(f"repeat {tag[1]} of {tag[0]:.60} is planned twice")
        tags.add(tag)
    return plan


def planned_runs(
    found: Outline, bins: Bins, at_once: int = AT_ONCE, of_second: Set[str] | None = SHOWN
) -> Iterator[RunRecords]:
    """Every planned run, begun or not, each as soon as its last line was read: not in the order of the plan.

    So no more is held than the runs that are open, and a record that comes late counts as any other does.
    """
    plan = {tag_of(entry): planned_of(entry) for entry in whole_plan(found)}
    ends = {tag: ends_of(extent, bins) for tag, extent in found.runs.items()}
    damaged = found.damaged_runs()
    held: dict[Tag, RunRecords] = {}
    workers: dict[Tag, set[str]] = defaultdict(set)
    for number, record in records_of_runs(found):
        tag = tag_of(record)
        if tag not in plan and (record["kind"] in OF_IDLE or damaged):
            continue
        if tag not in plan:
            raise refused_line(found.path, number, f"is of {tag[0]!r:.60}, which was not planned")
        extent = found.runs[tag]
        if tag not in held:
            held[tag] = RunRecords(plan[tag], bins, Room(extent.size), at_once, of_second)
            if tag in damaged:
                held[tag].add({"kind": "caveat", "code": DAMAGED, "text": damaged[tag]})
        held[tag].add(record)
        if number in ends[tag]:
            held[tag].close(ends[tag][number])
        workers[tag] |= {record["worker"]} if "worker" in record else set()
        if len(workers[tag]) > MOST_WORKERS:
            raise refused_line(found.path, number, f"one worker more than the {MOST_WORKERS:,} of a study")
        if number == extent.last:
            del plan[tag]
            yield held.pop(tag).settled()
    for tag, planned in plan.items():
        yield held.get(tag, RunRecords(planned, bins)).settled()


def ends_of(extent: Extent, bins: Bins) -> dict[int, int]:
    """The numbers of the lines after which nothing more comes of a span, and where that span begins."""
    last: dict[int, int] = {}
    for second, number in extent.seconds.items():
        span = bins.start(second)
        last[span] = max(number, last.get(span, 0))
    return {number: span for span, number in last.items()}


def is_paced(planned: Mapping[str, Any]) -> bool:
    """Whether requests come at a rate, or users as a course says: not each user's all the time."""
    return planned["load"] == "open" or bool(planned["stages"])


def planned_of(entry: Record) -> dict[str, Any]:
    """What was planned of a run, with what older plans do not tell as it is where it does not apply.

    In those the endpoints of a backend are of one server.
    """
    course = tuple((str(name), *map(float, rest)) for name, *rest in entry.get("stages") or ())
    names = {name: entry.get(name) or "" for name in LATER}
    names["server"] = names["server"] or entry["backend"]
    others = {"stages": course, "asked": entry.get("asked"), "confirming": bool(entry.get("confirming"))}
    return {name: entry[name] for name in PLANNED} | names | planned_axes(entry) | others
