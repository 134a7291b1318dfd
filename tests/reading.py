"""A small ledger, read whole."""

from dataclasses import dataclass
from pathlib import Path

from reports.ledger.files import parsed
from reports.ledger.ledger import Record, outline, records_of_runs
from reports.ledger.seals import Seals


@dataclass(frozen=True)
class Ledger:
    """Its header, every later record in order, and whether the last line was cut off."""

    header: Record
    records: tuple[Record, ...]
    cut_line: bool

    def of_kind(self, kind: str) -> list[Record]:
        """The records of one kind, in order."""
        return [record for record in self.records if record["kind"] == kind]


def read_ledger(path: Path) -> Ledger:
    """All of it; LedgerError as the reports' own reading raises it."""
    found = outline(path)
    assert all(number <= found.lines for number, _ in records_of_runs(found))
    seals = Seals()
    lines = [
        seals.open_line(line, at) for at, line in enumerate(path.read_bytes().splitlines()[: found.lines], 1)
    ]
    return Ledger(found.header, tuple(parsed(line) for line in lines[1:] if line), found.cut_line)
