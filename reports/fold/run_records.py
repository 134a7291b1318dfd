"""The runs of a study: what was planned of each, and what the ledger has of it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reports.fold.long_run import Bins, LongRun, binned
from reports.fold.records import readable
from reports.histogram.codec import Room
from reports.ledger.ledger import Outline, Record, Tag, records_of_runs, refused_line, tag_of
from reports.ledger.records import MOST_RUNS, MOST_WORKERS, check_planned

PLAN_FIELDS = ("cell", "repeat", "endpoint", "backend", "protocol", "payload", "batch", "load", "level")
OF_IDLE = ("health", "path")
"""What older programs also wrote of workers that had nothing to do, by the cell of the study before."""
AXES = ("arrivals", "channels", "client", "link", "congestion", "variant", "profile")
"""What a plan tells of a cell beyond that; empty where it does not apply, and in older ledgers."""
LONG_BYTES = 16_000_000
"""A run with more lines than that is merged while it is read: parsed, they take ten times as much memory."""


@dataclass(frozen=True)
class RunRecords:
    """One execution of one cell: its plan, and its records by kind, in the ledger's order.

    The histograms of its records are decoded.
    """

    planned: Mapping[str, Any]
    kinds: Mapping[str, Sequence[Record]]

    def of_kind(self, kind: str) -> Sequence[Record]:
        """Its records of one kind."""
        return self.kinds.get(kind, ())

    def measured(self, kind: str) -> list[Record]:
        """Its records of one kind that belong to the measure phase."""
        return [record for record in self.of_kind(kind) if record["phase"] == "measure"]

    @property
    def drained(self) -> list[Record]:
        """What workers said at the end of the measure phase; one that failed to drain says only its error."""
        return [record for record in self.measured("drained") if "error" not in record]


@dataclass(frozen=True)
class Seen:
    """A run as its Summary needs it, and as the timeline does: with one record for several seconds."""

    whole: RunRecords
    by_second: RunRecords


class Collecting(Protocol):
    """Takes the records of one run, and has them by kind: for the Summary, and for the timeline."""

    def add(self, record: Record) -> None:
        """Takes in one record."""

    def kinds(self) -> tuple[Mapping[str, Sequence[Record]], Mapping[str, Sequence[Record]]]:
        """What came of all that was taken in."""


class ShortRun:
    """Keeps all records of a run."""

    def __init__(self, bins: Bins, room: Room) -> None:
        self._bins, self._room = bins, room
        self._records: list[Record] = []

    def add(self, record: Record) -> None:
        """Takes in one record."""
        self._records.append(record)

    def kinds(self) -> tuple[Mapping[str, Sequence[Record]], Mapping[str, Sequence[Record]]]:
        """All records, and those of the timeline in bins."""
        kinds: dict[str, list[Record]] = defaultdict(list)
        for record in readable(self._records, self._room):
            kinds[record["kind"]].append(record)
        return kinds, kinds if self._bins.width_s == 1 else binned(kinds, self._bins)


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


def planned_runs(found: Outline, bins: Bins, long_bytes: int = LONG_BYTES) -> Iterator[Seen]:
    """Every planned run, begun or not, each as soon as its last line was read: not in the order of the plan.

    So no more is held than the runs that are open, and a record that comes late counts as any other does.
    """
    plan = {tag_of(entry): planned_of(entry) for entry in whole_plan(found)}
    held: dict[Tag, Collecting] = {}
    workers: dict[Tag, set[str]] = defaultdict(set)
    for number, record in records_of_runs(found):
        tag = tag_of(record)
        if tag not in plan and record["kind"] in OF_IDLE:
            continue
        if tag not in plan:
            raise refused_line(found.path, number, f"is of {tag[0]!r:.60}, which was not planned")
        extent = found.runs[tag]
        if tag not in held:
            made = LongRun if extent.size > long_bytes else ShortRun
            held[tag] = made(bins, Room(extent.size))
        held[tag].add(record)
        workers[tag] |= {record["worker"]} if "worker" in record else set()
        if len(workers[tag]) > MOST_WORKERS:
            raise refused_line(found.path, number, f"one worker more than the {MOST_WORKERS:,} of a study")
        if number == extent.last:
            yield _seen(plan.pop(tag), held.pop(tag))
    for tag, planned in plan.items():
        yield _seen(planned, held.get(tag) or ShortRun(bins, Room(0)))


def _seen(planned: Mapping[str, Any], records: Collecting) -> Seen:
    whole, by_second = records.kinds()
    return Seen(RunRecords(planned, whole), RunRecords(planned, by_second))


def planned_of(entry: Record) -> dict[str, Any]:
    """What was planned of a run, with what older plans do not tell empty."""
    axes = {name: entry.get(name) or "" for name in AXES}
    asked = {f"{name}_asked": entry.get(name) or 0 for name in ("workers", "hosts", "instances")}
    of_server = {"queue_delay_us": entry.get("queue_delay_us")}
    course = tuple((str(name), *map(float, rest)) for name, *rest in entry.get("stages") or ())
    return {name: entry[name] for name in PLAN_FIELDS} | axes | asked | of_server | {"stages": course}
