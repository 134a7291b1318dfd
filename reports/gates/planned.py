"""What a cell may be chosen by: what was planned of it, as a study's plan has it."""

from collections.abc import Mapping
from typing import Any

from reports.fold.run_records import planned_of
from reports.ledger.ledger import Record

Planned = Mapping[str, Any]


def planned_cell(entry: Record) -> dict[str, Any]:
    """From an entry of a plan."""
    return planned_of(entry) | {name: entry.get(name) or 0 for name in ("workers", "hosts")}
