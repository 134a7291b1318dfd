"""The number and the checksum at the end of each line of a ledger: what was lost, moved or changed since.

A line ends in `,"line":7,"crc32":123}`. The checksum is of all bytes before its own name; that of the header
begins with 0, and all others with the header's, so that a line of another ledger does not fit.
"""

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

_SEAL = re.compile(rb',"line":(\d{1,15}),"crc32":(\d{1,10})\}\s*$')
_LONGEST_SEAL = 64
MOST_NAMED = 3
"""Of the lines in a sentence."""


def seal_record(record: bytes, number: int, header: int) -> tuple[bytes, int]:
    """A record in JSON with its seal, as a line; and its checksum. `header` is that of line 1, there 0."""
    body = b'%s,"line":%d' % (record[:-1], number)
    checksum = crc32(body, header)
    return b'%s,"crc32":%d}\n' % (body, checksum), checksum


@dataclass(frozen=True)
class Gap:
    """Numbers that are missing, from the first to the last, before which line of the file."""

    first: int
    last: int
    before: int

    def __str__(self) -> str:
        """As a sentence names them."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def read_header_checksum(line: bytes) -> int | None:
    """That of a ledger, as the seal of its first line states it; None without a seal."""
    seal = _seal_of(line)
    return int(seal[2]) if seal else None


def _seal_of(line: bytes) -> re.Match[bytes] | None:
    return _SEAL.search(line, max(0, len(line) - _LONGEST_SEAL))


@dataclass
class Seals:
    """Breaks the seals of a ledger's lines one after the other, and keeps what did not fit.

    Lines of a ledger without them, of an older version, are taken as they are. `changed`, `twice` and `moved`
    are lines of the file; those that were changed, or are there already, are left out.
    """

    header_changed: bool = False
    changed: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    _gaps: list[Gap] = field(default_factory=list)
    _late: set[int] = field(default_factory=set)
    _headers: frozenset[int] = frozenset()
    _next: int = 1

    def open_line(self, line: bytes, at: int) -> bytes | None:
        """The record of a line of the file, without its seal; None where it does not count."""
        seal = _seal_of(line)
        if at == 1 and seal:
            made, stated = crc32(line[: seal.end(1)].removeprefix(BOM_UTF8)), int(seal[2])
            # Either may be what was changed, and the other is in the seals of all others.
            self.header_changed, self._headers = made != stated, frozenset((made, stated))
        elif self._headers:
            if seal is None or int(seal[2]) not in (crc32(line[: seal.end(1)], one) for one in self._headers):
                self.changed.append(at)
                return None
        elif seal:
            # Only the header has lost its own: against what the others are checked is not known.
            self.header_changed = True
        if seal is None:
            return line
        return line[: seal.start()] + b"}" if self._counts(int(seal[1]), at) else None

    def _counts(self, number: int, at: int) -> bool:
        """Whether a line of that number is not there yet."""
        if number > self._next:
            self._gaps.append(Gap(self._next, number - 1, at))
        elif number < self._next:
            if number in self._late or not self._is_missing(number):
                self.twice.append(at)
                return False
            self._late.add(number)
            self.moved.append(at)
        self._next = max(self._next, number + 1)
        return True

    def _is_missing(self, number: int) -> bool:
        at = bisect_right(self._gaps, number, key=lambda gap: gap.first) - 1
        return at >= 0 and number <= self._gaps[at].last

    @property
    def missing(self) -> list[Gap]:
        """What has not come until now."""
        found, late = [], sorted(self._late)
        for gap in self._gaps:
            first = gap.first
            for number in late[bisect_right(late, first - 1) : bisect_right(late, gap.last)]:
                if number > first:
                    found.append(Gap(first, number - 1, gap.before))
                first = number + 1
            if first <= gap.last:
                found.append(Gap(first, gap.last, gap.before))
        return found

    def sentences(self) -> Iterator[str]:
        """What a reader must know of the ledger as a whole."""
        if self.header_changed:
            yield "Line 1 of the ledger, its header, was changed after it was written."
        told = (
            (self.changed, "changed, or of another ledger, and left out"),
            (self.missing, "lost"),
            (self.twice, "there already, and left out"),
            (self.moved, "not where it was written, and taken"),
        )
        for places, what in told:
            if places:
                yield f"{name_lines(places)} of the ledger: {what}."


def name_lines(places: Sequence[int | Gap]) -> str:
    """`Line 7`, `Lines 7, 9 to 12`."""
    several = len(places) > 1 or str(places[0]).count(" ")
    more = f" and {len(places) - MOST_NAMED:,} more" if places[MOST_NAMED:] else ""
    return f"Line{'s' if several else ''} {', '.join(map(str, places[:MOST_NAMED]))}{more}"
