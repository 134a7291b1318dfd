"""Seconds of a path with the same connections, put together so that the same Path follows from them."""

from collections.abc import Iterator, Sequence
from typing import Any

from reports.fold.coarse import grouped_by, stated
from reports.fold.path_fold import GROWTHS
from reports.ledger.ledger import Record

SUMS = (*GROWTHS, "rwnd_limited_ns", "sndbuf_limited_ns", "span_ns")
MEANS = ("rtt_ns", "cwnd_bytes", "delivery_bytes_per_s")
STANDING = ("asked", "connections")


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
