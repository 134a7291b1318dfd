"""The workers' health over a phase that may be long, in the memory of a short one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.fold.health import SECOND_NS, Health, health
from reports.fold.readable import readable
from reports.histogram.buckets import compact
from reports.ledger.ledger import Record

HELD = 1_000
"""Records that are kept one by one: some minutes of a few workers, or a second of a thousand."""
SUMS = ("loop_ran_ns", "cpu_wait_ns")


class HealthSoFar:
    """Takes a record of each worker and second; of old ones it keeps the sums."""

    def __init__(self) -> None:
        self._old: list[Record] = []
        self._new: list[Record] = []

    def add(self, record: Record) -> None:
        """One worker's second."""
        self._new.append(record)
        if len(self._new) >= HELD:
            self._old, self._new = joined([*self._old, *readable(self._new)]), []

    @property
    def found(self) -> Health:
        """What all of them say of processor time and event loops, without pauses and what was in flight."""
        return health([*self._old, *readable(self._new)])


def joined(records: Sequence[Record]) -> list[Record]:
    """One record of each worker for all of its seconds; those that state other things stay apart."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        stated = tuple(name for name in ("cpu_pct", *SUMS) if record.get(name) is not None)
        groups.setdefault((record["worker"], "lag" in record["histograms"], *stated), []).append(record)
    return [one_of(stated, lines) for (_, _, *stated), lines in groups.items()]


def one_of(stated: Sequence[str], lines: Sequence[Record]) -> Record:
    """The record of a span that is as long as those of all lines, which state the same."""
    spans_ns = [line.get("span_ns") or SECOND_NS for line in lines]
    made = {"kind": "health", "worker": lines[0]["worker"], "second": lines[-1]["second"]}
    made |= {
        "span_ns": sum(spans_ns),
        **{name: sum(line[name] for line in lines) for name in SUMS if name in stated},
    }
    if "cpu_pct" in stated:
        used = sum(line["cpu_pct"] * span_ns for line, span_ns in zip(lines, spans_ns, strict=True))
        made["cpu_pct"] = used / sum(spans_ns)
    lags = [line["histograms"]["lag"] for line in lines if "lag" in line["histograms"]]
    return {**made, "histograms": {"lag": compact(lags)} if lags else {}}
