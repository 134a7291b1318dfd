"""A run too long to be kept: its records are merged while they are read, and give the same Summary."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import inf
from sys import intern
from types import MappingProxyType
from typing import Any

from reports.fold.coarse import (
    TIMELINE,
    Bins,
    Key,
    Merge,
    grouped_by,
    in_bin,
    in_bins,
    merged_health,
    merged_windows,
    stated,
)
from reports.fold.coarse_path import merged_path
from reports.fold.readable import readable
from reports.histogram.codec import Room
from reports.ledger.ledger import Record

MERGED = ("window", "health", "path", "sample")
AT_ONCE = 4_000
"""Records that wait to be merged."""
SETTLED_S = 60
"""After which hardly any record of a second still comes; one that does is merged by itself."""
NO_HISTOGRAMS: Mapping[str, Any] = MappingProxyType({})

OF_WORKERS: Mapping[str, tuple[Key, Merge]] = {
    "window": (lambda record: (record["phase"], record["worker"]), merged_windows),
    "health": (lambda record: (record["phase"], record["worker"], stated(record)), merged_health),
}
"""What of a worker's seconds becomes one, and how."""


class Totals:
    """Records of one kind, merged by a key: also those that come when others were merged already."""

    def __init__(self, key: Key, merge: Merge) -> None:
        self._key, self._merge = key, merge
        self._found: dict[Any, dict[str, Any]] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Merges these into those of the same key."""
        for key, group in grouped_by(records, self._key).items():
            before = [self._found[key]] if key in self._found else []
            self._found[key] = self._merge([*before, *group])

    @property
    def records(self) -> Sequence[Record]:
        """What the records of each key came to, by the key's first."""
        return list(self._found.values())


class LongRun:
    """Takes the records of one run; what a Summary is made of is exact, seconds are merged into `bins`.

    It keeps of every second the samples, of every worker's second what stood at its end, of all others sums
    and histograms; and of every span of the timeline what a timeline shows.
    """

    def __init__(self, bins: Bins, room: Room, at_once: int = AT_ONCE) -> None:
        self._filled = room
        self._at_once = self._room = at_once
        self._waiting: list[Record] = []
        self._newest = 0
        self._kept: dict[str, list[Record]] = defaultdict(list)
        self._bins = bins
        self._totals = {kind: Totals(*how) for kind, how in OF_WORKERS.items()}
        self._spans = {kind: _in_spans(*how, bins) for kind, how in TIMELINE.items()}

    def add(self, record: Record) -> None:
        """Takes in one record."""
        if record["kind"] not in MERGED:
            self._kept[record["kind"]] += readable([record], self._filled)
            return
        self._waiting.append(record)
        self._newest = max(self._newest, record["second"])
        if len(self._waiting) >= self._room:
            self._settle(self._bins.start(self._newest - SETTLED_S))
            self._room = len(self._waiting) + self._at_once

    def kinds(self) -> tuple[Mapping[str, Sequence[Record]], Mapping[str, Sequence[Record]]]:
        """What a Summary is made of, and what a timeline is."""
        self._settle(inf)
        windows, health = (self._totals[kind].records for kind in ("window", "health"))
        alone = [{**record, "in_flight": None} for record in health]
        whole = {**self._kept, "window": windows, "health": [*alone, *self._kept["health"]]}
        spans = {kind: totals.records for kind, totals in self._spans.items()}
        return whole, {**spans, "phase": self._kept["phase"]}

    def _settle(self, before: float) -> None:
        """Merges what waits of the seconds before this one."""
        ready: dict[str, list[Record]] = defaultdict(list)
        for record in self._waiting:
            if record["second"] < before:
                ready[record["kind"]].append(record)
        self._waiting = [record for record in self._waiting if record["second"] >= before]
        self._kept["health"] += [_standing(record) for record in ready["health"]]
        self._kept["sample"] += [interned(record) for record in ready["sample"]]
        path = grouped_by(ready["path"], in_bins(lambda record: (), self._bins))
        self._kept["path"] += chain.from_iterable(merged_path(span) for span in path.values())
        self._spans["sample"].add(ready["sample"])
        for kind, totals in self._totals.items():
            spans = _in_spans(*OF_WORKERS[kind], self._bins)
            spans.add(readable(ready[kind], self._filled))
            self._spans[kind].add(spans.records)
            totals.add(spans.records)


def _in_spans(key: Key, merge: Merge, bins: Bins) -> Totals:
    return Totals(in_bins(key, bins), _placed(merge, bins))


def _placed(merge: Merge, bins: Bins) -> Merge:
    return lambda records: in_bin(merge(records), bins)


def _standing(record: Record) -> Record:
    """What a worker had at a second's end, by itself: of that the mean over seconds is taken."""
    kept = {name: record.get(name) for name in ("worker", "phase", "second", "in_flight")}
    return {**interned(kept), "histograms": NO_HISTOGRAMS}


def interned(value: Any) -> Any:
    """The same with each text once in memory: so the names of fields, which JSON makes anew for each line."""
    if isinstance(value, dict):
        return {intern(name): interned(of) for name, of in value.items()}
    if isinstance(value, list):
        return [interned(of) for of in value]
    return intern(value) if isinstance(value, str) else value
