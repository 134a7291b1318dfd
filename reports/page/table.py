"""Tables as pure data: every renderer prints the same cells, marks and notes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


def letters(mark: int) -> str:
    """A footnote's name, as spreadsheets name columns: a, b, …, z, aa. A digit could be read as a power."""
    before, at = divmod(mark - 1, 26)
    return (letters(before) if before else "") + chr(ord("a") + at)


@dataclass(frozen=True)
class TableCell:
    """Text with its footnotes, counted from 1; `value` is what was formatted, `best` of its column.

    `heat` shades a ratio's cell: from -1, much less, over 0, equal, to 1, much more.
    """

    text: str
    marks: tuple[int, ...] = ()
    value: float | None = None
    best: bool = False
    heat: float | None = None

    @property
    def names(self) -> str:
        """Those of its footnotes: a,c; empty without any."""
        return ",".join(map(letters, self.marks))

    @property
    def reference(self) -> str:
        """The same where there are no superscripts: [a,c]."""
        return f" [{self.names}]" if self.marks else ""


Rows = tuple[tuple[TableCell, ...], ...]
LONG = 8
"""Rows; a table with more is long."""


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads; the first column names the row, `numeric` are the columns of numbers.

    A folded table is for looking things up, and opens on demand where the medium can do that.
    """

    title: str
    caption: str
    heads: tuple[str, ...]
    rows: Rows
    notes: tuple[str, ...] = ()
    numeric: frozenset[int] = frozenset()
    folded: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it is opened on demand, and can be searched."""
        return len(self.rows) > LONG

    @property
    def named_notes(self) -> list[str]:
        """Each footnote behind its name: [a] one run per cell."""
        return [f"[{letters(mark)}] {text}" for mark, text in enumerate(self.notes, 1)]

    @property
    def sentence(self) -> str:
        """What a table of one number says, with its unit and notes; empty for a larger one."""
        if len(self.rows) != 1 or len(self.heads) != 2 or self.numeric != {1}:
            return ""
        name, cell = self.rows[0]
        noted = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{self.title}, {name.text}, {self.heads[1]}: {cell.text}{noted}. {self.caption}".rstrip()


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


def with_best(rows: Rows, least: bool = False) -> Rows:
    """The same rows, the greatest number of each column marked, or the least.

    Numbers with a footnote are not ranked, those with the same three digits are marked together, and nothing
    is the best of one number.
    """
    columns = (map(_ranked, column) for column in zip(*rows, strict=True))
    found = [[number for number in column if number is not None] for column in columns]
    of = min if least else max
    best = [of(numbers) if numbers[1:] else None for numbers in found]
    return tuple(
        tuple(
            replace(cell, best=most is not None and _ranked(cell) == most)
            for cell, most in zip(row, best, strict=True)
        )
        for row in rows
    )


def _ranked(cell: TableCell) -> float | None:
    """Its number, if it is ranked, to three significant digits."""
    return None if cell.marks or cell.value is None else float(f"{cell.value:.2e}")


def table_of(
    title: str,
    heads: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    caption: str = "",
    notes: Footnotes | None = None,
    numeric: Iterable[int] = (),
    folded: bool = False,
) -> Table:
    """A table of cells, and of whatever else is shown as text."""
    cells = tuple(
        tuple(item if isinstance(item, TableCell) else TableCell(str(item)) for item in row) for row in rows
    )
    texts = notes.texts if notes else ()
    return Table(title, caption, tuple(heads), cells, texts, frozenset(numeric), folded)
