"""The ledger: append-only JSON lines, each with a "kind"; the only bridge from running to reporting.

What a damaged record leads to is said in one sentence; a developer sees where it came from.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.ledger.files import check_regular, parsed
from reports.ledger.records import OF_RUNS, check_record
from reports.ledger.seals import Gap, Seals, name_lines, read_header_checksum, seal_record

FILE_NAME = "ledger.jsonl"
VERSION = 2
READABLE = (1, VERSION)
MOST_GAPS = 1_000
"""Among a ledger's lines, until it is no longer told of which runs they are."""
LONGEST_LINE = 64_000_000
"""Bytes: a hundred times the longest that a study writes, its header with the whole plan."""
Record = Mapping[str, Any]
Tag = tuple[str, int]
"""The cell and the repeat of a run."""
_OF_RUN = re.compile(rb'\{"kind":"[\w-]+","cell":("(?:[^"\\]|\\.)*"),"repeat":(\d+)[,}]')
_SECOND = re.compile(rb'"second":(\d+)')
DAMAGED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What a value of another type, size or place than a ledger's brings about, wherever it is used."""
LONGEST = 200
"""Characters of an error's own words: a value that it quotes may be as long as a line of the ledger."""
REQUIRED = ("study", "title", "size", "started_utc", "plan")
TEXT, OBJECT, OBJECTS, LIST = "a text", "an object", "an object of objects", "a list of objects"
SHAPES = {
    **dict.fromkeys(("study", "title", "size", "started_utc"), TEXT),
    **dict.fromkeys(("options", "fingerprint", "images"), OBJECT),
    **dict.fromkeys(("endpoints", "backends"), OBJECTS),
    **dict.fromkeys(("plan", "links", "hosts"), LIST),
}


class LedgerError(Exception):
    """A ledger that cannot be read; the message is one sentence naming the file and the fix."""


class LedgerWriter:
    """Appends records to a ledger, each at once, so that a crash costs at most the line being written."""

    def __init__(self, path: Path | str) -> None:
        # Unbuffered: what a full disk does not take must not come again when the file is closed.
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (open until close())
        self._header, self._written = 0, 0
        with open(path, "rb") as there:
            for self._written, line in enumerate(there, 1):
                self._header = self._header if self._written > 1 else read_header_checksum(line) or 0

    def write(self, record: Record) -> None:
        """Appends one record as one line; ValueError where it holds NaN or an infinity, which JSON lacks."""
        text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        left, checksum = seal_record(text, self._written + 1, self._header)
        size = os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            # Half a line would make one with the next, once there is room.
            self._file.truncate(size)
            raise
        self._written += 1
        self._header = self._header or checksum

    def close(self) -> None:
        """Closes the file; closing twice is fine."""
        self._file.close()


@dataclass
class Extent:
    """How far a run reaches: the numbers of its first and its last line, the bytes of its lines, and the
    number of the last line of every second that they name.
    """

    first: int = 0
    last: int = 0
    size: int = 0
    seconds: dict[int, int] = field(default_factory=dict)

    def reach(self, number: int, size: int, second: int | None) -> None:
        """Takes in one more line."""
        self.first = self.first or number
        self.last = number
        self.size += size
        if second is not None:
            self.seconds[second] = number


@dataclass(frozen=True)
class Outline:
    """What a first look at a ledger tells: all that belongs to no run, and how far each run reaches.

    `lines` counts the lines, the header too, without a last one that was cut off. `seals` has what is
    damaged.
    """

    path: Path | str
    header: Record
    others: tuple[Record, ...]
    runs: Mapping[Tag, Extent]
    lines: int
    cut_line: bool
    seals: Seals

    def of_kind(self, kind: str) -> list[Record]:
        """The records of one kind that belong to no run, in order."""
        return [record for record in self.others if record["kind"] == kind]

    def damaged_runs(self) -> dict[Tag, str]:
        """The runs that lines are missing of, or may be, and which lines, as a caveat says it.

        A missing line is of a run that was under way; where none was, of the last before or the first after.
        """
        missing = self.seals.missing
        if self.seals.header_changed or len(missing) > MOST_GAPS:
            return dict.fromkeys(self.runs, "the ledger was changed after it was written")
        found: dict[Tag, list[Gap]] = {}
        for gap in missing:
            near = [tag for tag, run in self.runs.items() if run.first < gap.before <= run.last]
            ended = [(run.last, tag) for tag, run in self.runs.items() if run.last < gap.before]
            later = [(run.first, tag) for tag, run in self.runs.items() if run.first >= gap.before]
            for tag in near or [tag for _, tag in (*sorted(ended)[-1:], *sorted(later)[:1])]:
                found.setdefault(tag, []).append(gap)
        return {tag: f"{name_lines(gaps)} of the ledger: lost or changed" for tag, gaps in found.items()}


def outline(path: Path | str) -> Outline:
    """Looks through a ledger, finished or not; LedgerError where it is missing, empty, unknown or broken.

    A line of a run is told by how it begins, as a LedgerWriter writes it, and only any other is parsed: that
    is ten times as fast. So what is broken within a line of a run shows only in `records_of_runs`.
    """
    header: Record = {}
    others, runs, tags = [], dict[Tag, Extent](), dict[tuple[bytes, ...], Tag]()
    number, broken, whole, seals = 0, 0, b"", Seals()
    for number, whole in _lines(path):
        if broken:
            _whole(None, broken, path)
        if (line := seals.open_line(whole, number)) is None:
            continue
        if number > 1 and (found := _OF_RUN.match(line)) and (tag := _tag(found, tags)):
            second = _SECOND.search(line, found.end())
            runs.setdefault(tag, Extent()).reach(number, len(line), int(second[1]) if second else None)
            continue
        record = _parse(line)
        if number == 1:
            header = _checked_header(record, path)
            # Then the seal is not as it was written, and those of other lines may not be.
            seals.header_changed |= "crc32" in header
        elif record is None:
            broken = number
        elif record["kind"] == "header":
            raise LedgerError(f"{path}: line {number} begins another study: give each a ledger of its own.")
        elif _of_run(record):
            runs.setdefault(tag_of(record), Extent()).reach(number, len(line), record.get("second"))
        elif record["kind"] in OF_RUNS:
            raise refused_line(path, number, f"a {record['kind']} of no run")
        else:
            others.append(record)
    if not number:
        raise LedgerError(f"{path}: is empty: the study stopped before its header, run it again.")
    cut = _parse(whole) is None
    if cut and seals.changed[-1:] == [number]:
        seals.changed.pop()
    return Outline(path, header, tuple(others), runs, number - cut, cut, seals)


def records_of_runs(found: Outline) -> Iterator[tuple[int, Record]]:
    """Every record of a run with the number of its line, in order; LedgerError at one that cannot be true."""
    seals = Seals()
    for number, whole in _lines(found.path):
        if number > found.lines:
            return
        if (line := seals.open_line(whole, number)) is None:
            continue
        record = _whole(_parse(line), number, found.path)
        if _of_run(record):
            try:
                check_record(record)
            except ValueError as error:
                raise refused_line(found.path, number, str(error)) from error
            yield number, record


def tag_of(record: Record) -> Tag:
    """Which run a record or an entry of a plan belongs to; KeyError where it does not tell."""
    return record["cell"], record["repeat"]


def refused_line(path: Path | str, number: int, why: str) -> LedgerError:
    """That a line cannot be true, as a sentence."""
    return LedgerError(f"{path}: line {number}: {why}: fix or delete that line, and try again.")


def _of_run(record: Record) -> bool:
    return "cell" in record and "repeat" in record


def _tag(found: re.Match[bytes], known: dict[tuple[bytes, ...], Tag]) -> Tag | None:
    """The run that a line's beginning names, read once; None where its name is no JSON after all."""
    texts = found.groups()
    if texts not in known:
        try:
            known[texts] = (parsed(texts[0]), int(texts[1]))
        except ValueError:
            return None
    return known[texts]


def _lines(path: Path | str) -> Iterator[tuple[int, bytes]]:
    """The lines and their numbers, but blank ones, as an editor may leave them."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise LedgerError(f"{path}: line {number} is endless: this is not a ledger, or damaged.")
                if number == 1 or not line.isspace():
                    yield number, line
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be read ({error.strerror}): name a directory that a study wrote."
        ) from error


def _parse(line: bytes) -> dict[str, Any] | None:
    """The record of one line, or None where the line is not a JSON object with a kind."""
    try:
        record = parsed(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def _checked_header(record: Record | None, path: Path | str) -> Record:
    if record is None or record["kind"] != "header":
        raise LedgerError(f"{path}: line 1 is no header: this is not a ledger, or its start is lost.")
    if record.get("version") not in READABLE:
        raise LedgerError(
            f"{path}: has version {record.get('version')!r} and this program reads "
            f"{' and '.join(map(str, READABLE))}: use the inferswarm that wrote it."
        )
    return record


def _whole(record: Record | None, number: int, path: Path | str) -> Record:
    if record is None:
        raise LedgerError(f"{path}: line {number} is broken: fix or delete that line, and try again.")
    return record


@contextmanager
def damage_refused(place: Path | str) -> Iterator[None]:
    """Around all that works on the records of `place`: LedgerError where one is not what a ledger holds.

    An error in the program may look alike, so its words are in the sentence, and `python -X dev` lets it
    through.
    """
    try:
        yield
    except DAMAGED as error:
        if developing():
            raise
        raise LedgerError(
            f"{place}: a record is not what a ledger holds ({error!r:.{LONGEST}}): it was edited or damaged."
        ) from error


def developing() -> bool:
    """Whether Python was started with `-X dev` or PYTHONDEVMODE=1."""
    return sys.flags.dev_mode


def check_header(header: Record, path: Path | str) -> None:
    """LedgerError where a required field is missing, or one that is there is not what it must be.

    Those that are not required may be null, too.
    """
    if missing := [name for name in REQUIRED if name not in header]:
        raise LedgerError(f"{path}: the header lacks {', '.join(missing)}: run the study again.")
    for name, shape in SHAPES.items():
        value = header.get(name)
        if not (_is(value, shape) or (value is None and name not in REQUIRED)):
            raise LedgerError(
                f"{path}: the header's {name} is not {shape}: fix line 1, or run the study again."
            )


def _is(value: Any, shape: str) -> bool:
    if shape == TEXT:
        return isinstance(value, str)
    if shape == LIST:
        return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
    whole = isinstance(value, Mapping)
    return whole and (shape == OBJECT or all(isinstance(one, Mapping) for one in value.values()))
