"""A run's records as the report folds them: its Summary at its end, and its seconds meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.fold.readable import readable
from reports.fold.run_records import Run, planned_of
from reports.fold.timeline import Second, timeline
from reports.ledger.ledger import Record
from reports.study.summarise import summarise
from reports.summary.summary import Summary


def summary_of(header: Record, entry: Record, records: Iterable[Record]) -> Summary:
    """The Summary of the planned run `entry`, the same as the report's. KeyError, ValueError as it raises."""
    options, links = header.get("options") or {}, header.get("links") or ()
    return summarise(run_of(entry, records), options, links)


def second_of(entry: Record, at: int, records: Iterable[Record]) -> Second:
    """What one run did in the second `at` (Unix time), of the records of that second and what came before:
    its phases, and the sample of the second before. ValueError where there is none of that second.
    """
    for second in timeline([run_of(entry, records)], 0):
        if second.t_s == at:
            return second
    raise ValueError(f"no record of second {at}")


def run_of(entry: Record, records: Iterable[Record]) -> Run:
    """The run as the report reads it from a ledger."""
    kinds: defaultdict[str, list[Record]] = defaultdict(list)
    for record in readable(list(records)):
        kinds[record["kind"]].append(record)
    return Run(planned_of(entry), kinds)


def entry_of(plan: Sequence[Record], record: Mapping[str, Any]) -> Record:
    """What was planned of the run that a record belongs to. KeyError where it was not planned."""
    for entry in plan:
        if (entry["cell"], entry["repeat"]) == (record["cell"], record["repeat"]):
            return entry
    raise KeyError(f"{record['cell']} was not planned")
