"""Several seconds of a run in one record: counts summed, histograms merged, of what stands the last word."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reports.fold.health import SECOND_NS
from reports.fold.samples import gpus_over, host_cpu_pct
from reports.histogram.buckets import Buckets, compact
from reports.ledger.ledger import Record

COUNTS = ("ok", "images", "request_bytes", "response_bytes")
HEALTH_SUMS = ("loop_ran_ns", "cpu_wait_ns", "gc_pauses", "gc_ns")
COUNTERS = ("server", "pending_requests", "host")
Key = Callable[[Record], tuple[Hashable, ...]]
Merge = Callable[[Sequence[Record]], dict[str, Any]]


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
