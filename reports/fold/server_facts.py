"""What the server behind a run held in memory before and after its measure phase."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.ledger.ledger import Record


@dataclass(frozen=True, kw_only=True)
class Held:
    """One reading over all of a server's processes, in bytes; None where kernel or driver did not tell.

    `how` is pss, where what processes share is divided among them, or rss, where each counts all of it.
    `gpu_memory_bytes` is of these processes alone.
    """

    resident_bytes: int
    processes: int
    how: str
    anonymous_bytes: int | None = None
    file_bytes: int | None = None
    shared_bytes: int | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True)
class Memory:
    """The server's name and both readings; None where one was not made."""

    server: str
    before: Held | None
    after: Held | None


def memory_of(records: Sequence[Record]) -> Memory | None:
    """From the `memory` records of a run; None without any, as where the server was not started here."""
    by_when = {record["when"]: _held(record) for record in records}
    before, after = by_when.get("before"), by_when.get("after")
    return Memory(records[-1]["server"], before, after) if before or after else None


def _held(record: Record) -> Held:
    return Held(**{name: record[name] for name in Held.__dataclass_fields__ if name in record})
