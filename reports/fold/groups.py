"""Records in groups: by worker, by second."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from reports.ledger.ledger import Record


def grouped(records: Iterable[Record], name: str) -> Mapping[Any, list[Record]]:
    """The records by what they have under a name, each group in their order."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[record[name]].append(record)
    return groups
