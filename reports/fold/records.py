"""Records in groups, by worker and by second; their times and ratios, and their histograms as counts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reports.histogram.buckets import Buckets
from reports.histogram.codec import Room, decoded_all
from reports.ledger.ledger import Record
from reports.ledger.records import DURATIONS, DURATIONS_OF_CLASS

HOLES, MOST_HOLES = 4, 60
"""Seconds that nobody tells of: so many for each one that is told, and these.

A clock that jumped, or somebody else's ledger, must not become millions of empty seconds.
"""


def epoch_s(utc: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; ValueError where it is none."""
    return datetime.fromisoformat(utc).timestamp()


def iso(second: int) -> str:
    """ISO 8601 with a Z: 2026-11-21T11:00:00Z; ValueError or OverflowError where no calendar has it."""
    try:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OSError as error:
        raise ValueError(f"second {second} is in no calendar") from error


def every_second(known: Iterable[int], width_s: int = 1) -> list[int]:
    """Every `width_s`-th second from the first to the last known; only known ones if most would be empty."""
    found = sorted(set(known))
    if not found or (found[-1] - found[0]) // width_s > HOLES * len(found) + MOST_HOLES:
        return found
    return list(range(found[0], found[-1] + 1, width_s))


def grouped(records: Iterable[Record], name: str) -> Mapping[Any, list[Record]]:
    """The records by what they have under a name, each group in their order."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[record[name]].append(record)
    return groups


def ratio(part: float | None, whole: float | None) -> float | None:
    """One by the other; None where either is unknown or there is no whole."""
    return None if part is None or not whole or whole < 0 else part / whole


@dataclass(slots=True)
class Weighted:
    """A sum of values, each times its weight, and that of the weights."""

    amount: float = 0
    weight: int = 0

    def add(self, amount: float, weight: int) -> None:
        """Takes in a value times its weight."""
        self.amount += amount
        self.weight += weight

    @property
    def mean(self) -> float | None:
        """The weighted mean; None without any weight."""
        return self.amount / self.weight if self.weight else None


class LastWords:
    """What stood under a name at the end of each second, by the last word of each worker."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seconds: dict[int, dict[str, int]] = {}
        """Those of which more may come."""
        self._untold: set[int] = set()
        self._closed, self._most = Weighted(), list[int]()

    def add(self, record: Record) -> None:
        """Takes in a second of a worker."""
        if record.get(self._name) is None:
            self._untold.add(record["second"])
        else:
            told = self._seconds.setdefault(record["second"], {})
            told[record["worker"]] = int(record[self._name])

    def close(self, seconds: Iterable[int]) -> None:
        """Of these seconds nothing more comes."""
        ended = {at: self._seconds.pop(at) for at in seconds if at in self._seconds}
        self._most = self._most_of(ended)
        for told in ended.values():
            self._closed.add(sum(told.values()), 1)

    @property
    def mean(self) -> float | None:
        """Over the seconds in which some told, of all workers together; None without any."""
        told = [sum(told.values()) for told in self._seconds.values()]
        return ratio(self._closed.amount + sum(told), self._closed.weight + len(told))

    @property
    def most(self) -> int | None:
        """Of the seconds in which each record told, for a part is no sum; None without any."""
        return max(self._most_of(self._seconds), default=None)

    def _most_of(self, seconds: Mapping[int, Mapping[str, int]]) -> list[int]:
        whole = (sum(told.values()) for at, told in seconds.items() if at not in self._untold)
        return [max(sums)] if (sums := [*self._most, *whole]) else []


def readable(records: Sequence[Record], room: Room | None = None) -> list[Record]:
    """The records with what `histograms` they have; HistogramError: one is broken, or `room` is too small."""
    named = [_texts(record) for record in records]
    of_classes = (one["histograms"] for record in records for one in classes_of(record).values())
    every = [*(texts for texts in named if texts), *of_classes]
    found = iter(decoded_all([text for texts in every for text in texts.values()], room))
    made = [
        record if texts is None else {**record, "histograms": {name: next(found) for name in texts}}
        for record, texts in zip(records, named, strict=True)
    ]
    made = [_with_classes(record, found) if classes_of(record) else record for record in made]
    for record in made:
        if record["kind"] == "window":
            _check_totals(record)
    return made


def classes_of(record: Record) -> Mapping[str, Record]:
    """What a window has of each class of requests, by label; none of a record of another kind."""
    classes: Mapping[str, Record] = record.get("classes") or {} if record["kind"] == "window" else {}
    return classes


def _with_classes(window: Record, found: Iterator[Buckets]) -> Record:
    """A window whose classes have the next of the decoded histograms."""
    each = {
        label: {**one, "histograms": {name: next(found) for name in one["histograms"]}}
        for label, one in classes_of(window).items()
    }
    return {**window, "classes": each}


def _check_totals(window: Record) -> None:
    """ValueError where a window's histograms do not hold as many values as it counted."""
    ok, held = window["ok"], {name: found.total for name, found in window["histograms"].items()}
    finished = ok + sum(window["failures"].values())
    for name, count in held.items():
        if count > finished or (name in DURATIONS and count != ok):
            raise ValueError(f"a window of {ok} successes has {count} values of {name:.40}")
    for label, one in classes_of(window).items():
        totals = {name: found.total for name, found in one["histograms"].items()}
        if totals != dict.fromkeys(DURATIONS_OF_CLASS, one["ok"]) and (one["ok"] or any(totals.values())):
            raise ValueError(f"class {label:.40} of {one['ok']} successes has {totals} values")


def _texts(record: Record) -> Mapping[str, str] | None:
    """The encoded histograms of a record by name; None for a kind that has none."""
    if record["kind"] in ("window", "trace"):
        texts: Mapping[str, str] = record["histograms"]
        return texts
    if record["kind"] == "health":
        return {"lag": record["lag"]} if record.get("lag") else {}
    return None
