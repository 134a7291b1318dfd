"""A run too long to be kept: its records are merged while they are read, and give the same Summary."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from math import inf
from sys import intern
from types import MappingProxyType
from typing import Any

from reports.fold.health import SECOND_NS
from reports.fold.path import GROWTHS
from reports.fold.records import readable
from reports.fold.samples import gpus_over, host_cpu_pct
from reports.histogram.buckets import Buckets, compact
from reports.histogram.codec import Room
from reports.ledger.ledger import Record

MERGED = ("window", "health", "path", "sample")
AT_ONCE = 4_000
"""Records that wait to be merged."""
SETTLED_S = 60
"""After which hardly any record of a second still comes; one that does is merged by itself."""
NO_HISTOGRAMS: Mapping[str, Any] = MappingProxyType({})
COUNTS = ("ok", "images", "request_bytes", "response_bytes")
HEALTH_SUMS = ("loop_ran_ns", "cpu_wait_ns", "gc_pauses", "gc_ns")
COUNTERS = ("server", "pending_requests", "host")
Key = Callable[[Record], tuple[Hashable, ...]]
Merge = Callable[[Sequence[Record]], dict[str, Any]]
SUMS = (*GROWTHS, "rwnd_limited_ns", "sndbuf_limited_ns", "span_ns")
MEANS = ("rtt_ns", "cwnd_bytes", "delivery_bytes_per_s")
STANDING = ("asked", "connections")


@dataclass(frozen=True)
class Bins:
    """Spans of so many seconds; one begins at `origin`, the first second of the study."""

    width_s: int
    origin: int

    def start(self, second: int) -> int:
        """The first second of the span that a second lies in."""
        return second - (second - self.origin) % self.width_s


def grouped_by(records: Iterable[Record], key: Key) -> dict[tuple[Hashable, ...], list[Record]]:
    """The records by a key, each group in their order."""
    groups: dict[tuple[Hashable, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def stated(record: Record) -> tuple[str, ...]:
    """The names of what a record tells: only records that tell the same have means of the same seconds."""
    if None in record.values() or not record.get("lag", True):
        return tuple(name for name, value in record.items() if value not in (None, ""))
    return tuple(record)


def binned(kinds: Mapping[str, Sequence[Record]], bins: Bins) -> dict[str, Sequence[Record]]:
    """A run's records as a timeline of wider seconds needs them; its phases are as they were."""
    found: dict[str, Sequence[Record]] = {"phase": kinds.get("phase", ())}
    for kind, (key, merged) in TIMELINE.items():
        groups = grouped_by(kinds.get(kind, ()), in_bins(key, bins))
        found[kind] = [in_bin(merged(group), bins) for group in groups.values()]
    return found


def in_bins(key: Key, bins: Bins) -> Key:
    """A key that also tells records of different spans apart."""
    return lambda record: (bins.start(record["second"]), *key(record))


def in_bin(record: Record, bins: Bins) -> dict[str, Any]:
    """The record as one of its whole span."""
    return {**record, "second": bins.start(record["second"])}


def merged_windows(windows: Sequence[Record], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Windows as one, with these of their histograms or all; its `late` is known where each one's is."""
    late = [window.get("late") for window in windows]
    starts = [window["first_start_ns"] for window in windows if window.get("first_start_ns")]
    found = {name for window in windows for name in window["histograms"]}
    kept = found if names is None else found.intersection(names)
    return {
        **windows[-1],
        **{name: sum(window[name] for window in windows) for name in COUNTS},
        **{name: sum(window.get(name, 0) for window in windows) for name in ("abandoned", "server_count")},
        **{name: _summed(windows, name) for name in ("failures", "server_ns", "out_of_range")},
        "late": None if None in late else sum(late),
        "first_start_ns": min(starts, default=0),
        "last_end_ns": max(window.get("last_end_ns") or 0 for window in windows),
        "histograms": {name: _merged(windows, name) for name in sorted(kept)},
    }


def merged_health(records: Sequence[Record]) -> dict[str, Any]:
    """What one worker said of itself, all with the same things told; means count by the time they cover."""
    spans_ns = [record.get("span_ns") or SECOND_NS for record in records]
    last = records[-1]
    found: dict[str, Any] = {"span_ns": sum(spans_ns)}
    found |= {name: sum(of[name] for of in records) for name in HEALTH_SUMS if last.get(name) is not None}
    if last.get("cpu_pct") is not None:
        used = sum(float(of["cpu_pct"]) * span_ns for of, span_ns in zip(records, spans_ns, strict=True))
        found["cpu_pct"] = used / found["span_ns"]
    if last.get("gc_max_ns") is not None:
        found["gc_max_ns"] = max(of["gc_max_ns"] for of in records)
    lags = {"lag": _merged(records, "lag")} if "lag" in last["histograms"] else {}
    return {**last, **found, "histograms": lags}


def merged_samples(samples: Sequence[Record]) -> dict[str, Any]:
    """Samples as one: of what is counted from a start on the last word, of GPUs and the host's CPU the mean.

    `samples` under their name says how many those are, so that what is merged already can be merged again.
    """
    last: dict[str, Any] = {}
    for sample in samples:
        last |= {name: sample[name] for name in COUNTERS if sample.get(name) is not None}
    each = [sample for sample in samples for _ in range(sample.get("samples", 1))]
    gpus = {name: value for name, value in asdict(gpus_over(each)).items() if value is not None}
    cpu_pct = host_cpu_pct(each)
    if cpu_pct is not None:
        last["host"] = {**last["host"], "cpu_pct": cpu_pct}
    return {**samples[-1], **last, "gpus": [gpus] if gpus else [], "samples": len(each)}


def timeline_windows(windows: Sequence[Record]) -> dict[str, Any]:
    """All workers' windows as one, with the only histogram that a timeline shows."""
    return merged_windows(windows, ("latency",))


TIMELINE: Mapping[str, tuple[Key, Merge]] = {
    "window": (lambda record: (record["phase"],), timeline_windows),
    "health": (lambda record: (record["phase"], record["worker"], stated(record)), merged_health),
    "sample": (lambda record: (), merged_samples),
}
"""Which records of a span become one, and how."""


def _summed(records: Sequence[Record], name: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for record in records:
        total.update(record.get(name) or {})
    return dict(total)


def _merged(records: Sequence[Record], name: str) -> Buckets:
    return compact(record["histograms"][name] for record in records if name in record["histograms"])


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


def merged_path(records: Sequence[Record]) -> Iterator[Record]:
    """As many records as came, in which few differ and the others are one and the same object.

    Seconds are put together where the same workers told the same of the same number of connections, since the
    most at once is looked for among seconds. A mean has the weight of each of its records, so one of them has
    all that grew, and the others only repeat what was the mean.
    """
    seconds = grouped_by(records, lambda record: (record["phase"], record["second"]))
    alike: dict[tuple[Any, ...], list[list[Record]]] = {}
    for second in seconds.values():
        alike.setdefault(tuple(_situation(record) for record in second), []).append(second)
    for like in alike.values():
        for of_worker in zip(*like, strict=True):
            yield from _as_one(of_worker)


def _situation(record: Record) -> tuple[Any, ...]:
    standing = (record.get(name) for name in STANDING)
    return (record["phase"], record["worker"], *standing, stated(record))


def _as_one(records: Sequence[Record]) -> list[Record]:
    first = records[0]
    known = {name for name, value in first.items() if value is not None}
    mean = {name: sum(of[name] for of in records) / len(records) for name in MEANS if name in known}
    total = {name: sum(of[name] for of in records) for name in SUMS if name in known}
    least = {name: min(of[name] for of in records) for name in ("min_rtt_ns",) if name in known}
    looks = {name: first.get(name) for name in ("worker", "phase", "second", *STANDING)}
    again = {**looks, **mean, "span_ns": 0}
    return [{**first, **mean, **total, **least}, *[again] * (len(records) - 1)]
