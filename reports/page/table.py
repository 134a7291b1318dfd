"""Tables as pure data: every renderer prints the same cells, marks and notes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class TableCell:
    """Text with its footnote numbers; `value` is what was formatted, `share` its part of the greatest.

    `heat` shades a ratio's cell: from -1, much less, over 0, equal, to 1, much more.
    """

    text: str
    marks: tuple[int, ...] = ()
    value: float | None = None
    share: float | None = None
    heat: float | None = None

    @property
    def superscript(self) -> str:
        """The footnote numbers as superscripts, empty without any."""
        return ",".join(str(mark) for mark in self.marks).translate(_SUPERSCRIPTS)


Rows = tuple[tuple[TableCell, ...], ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads; the first column names the row, `numeric` are the columns of numbers.

    `caption` is of this table alone, `shared` are the sentences that hold for others of the study too.
    A folded table is for looking things up, and opens on demand where the medium can do that.
    """

    title: str
    caption: str
    heads: tuple[str, ...]
    rows: Rows
    notes: tuple[str, ...] = ()
    numeric: frozenset[int] = frozenset()
    shared: tuple[str, ...] = ()
    folded: bool = False

    @property
    def whole_caption(self) -> str:
        """The caption for where the table stands alone, empty without any."""
        return " ".join(text for text in (self.caption, *self.shared) if text)

    @property
    def numbered_notes(self) -> list[tuple[TableCell, str]]:
        """Each footnote with a cell that holds its mark alone."""
        return [(TableCell("", (mark,)), text) for mark, text in enumerate(self.notes, 1)]


class Footnotes:
    """Footnotes of one table in order of appearance; the same sentence is printed once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def marks(self, texts: Iterable[str]) -> tuple[int, ...]:
        """The footnote numbers of some sentences, counted from 1."""
        wanted = dict.fromkeys(texts)
        self._texts.extend(text for text in wanted if text not in self._texts)
        return tuple(sorted(self._texts.index(text) + 1 for text in wanted))

    @property
    def texts(self) -> tuple[str, ...]:
        """All sentences; the one at index i belongs to mark i + 1."""
        return tuple(self._texts)


def with_bars(rows: Rows) -> Rows:
    """The same rows, each number with its share of the greatest."""
    greatest = max((cell.value for row in rows for cell in row if cell.value is not None), default=0.0)
    if greatest <= 0:
        return rows
    shares = (((cell, None if cell.value is None else cell.value / greatest) for cell in row) for row in rows)
    return tuple(tuple(replace(cell, share=share) for cell, share in row) for row in shares)


def table_of(
    title: str,
    heads: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    caption: str = "",
    notes: Footnotes | None = None,
    numeric: Iterable[int] = (),
    shared: Iterable[str] = (),
    folded: bool = False,
) -> Table:
    """A table of cells, and of whatever else is shown as text."""
    cells = tuple(
        tuple(item if isinstance(item, TableCell) else TableCell(str(item)) for item in row) for row in rows
    )
    texts = notes.texts if notes else ()
    return Table(title, caption, tuple(heads), cells, texts, frozenset(numeric), tuple(shared), folded)
