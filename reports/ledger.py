"""The ledger: append-only JSON lines, each with a "kind"; the only bridge from running to reporting."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_NAME = "ledger.jsonl"
VERSION = 1

Record = Mapping[str, Any]


class LedgerError(Exception):
    """A ledger that cannot be read; the message is one sentence naming the file and the mend."""


class LedgerWriter:
    """Appends records to a ledger and flushes each, so that a crash costs at most the line being written."""

    def __init__(self, path: Path | str) -> None:
        self._file = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 (open until close())

    def write(self, record: Record) -> None:
        """Appends one record as one line; ValueError where it holds NaN or an infinity, which JSON lacks."""
        line = json.dumps(record, separators=(",", ":"), allow_nan=False)
        self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file; closing twice is fine."""
        self._file.close()


@dataclass(frozen=True)
class Ledger:
    """A ledger as read: its header, every later record in order, and whether the last line was cut off."""

    header: Record
    records: tuple[Record, ...]
    cut_line: bool

    def of_kind(self, kind: str) -> list[Record]:
        """The records of one kind, in order."""
        return [record for record in self.records if record["kind"] == kind]


def read_ledger(path: Path | str) -> Ledger:
    """Reads a ledger, finished or not; LedgerError where it is missing, empty, unknown or broken."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be read ({error.strerror}): name a directory that a study wrote."
        ) from error
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise LedgerError(f"{path}: is empty: the study stopped before its header, run it again.")
    records = [_parse(line) for line in lines]
    header = _checked_header(records[0], path)
    cut_line = records[-1] is None
    body = records[1:-1] if cut_line else records[1:]
    return Ledger(
        header, tuple(_whole(record, number, path) for number, record in enumerate(body, 2)), cut_line
    )


def _parse(line: bytes) -> dict[str, Any] | None:
    """The record of one line, or None where the line is not a JSON object with a kind."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def _checked_header(record: Record | None, path: Path | str) -> Record:
    if record is None or record["kind"] != "header":
        raise LedgerError(f"{path}: line 1 is no header: this is not a ledger, or its start is lost.")
    if record.get("version") != VERSION:
        raise LedgerError(
            f"{path}: has version {record.get('version')!r} and this program reads {VERSION}: "
            "use the inferswarm that wrote it."
        )
    return record


def _whole(record: Record | None, number: int, path: Path | str) -> Record:
    if record is None:
        raise LedgerError(f"{path}: line {number} is broken: mend or delete that line, then show it again.")
    return record
