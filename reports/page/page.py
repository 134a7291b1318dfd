"""A page, its sections and their charts, as data: what every format is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from reports.page.answer import AnswerRow
from reports.page.table import Table


@dataclass(frozen=True)
class Chart:
    """A drawing under a title: `kind` names the script's function that draws `data`, which JSON can hold.

    `notes` are sentences below it. Its numbers stand in the tables beside it, or in timeline.csv. A folded
    one opens on demand.
    """

    title: str
    caption: str
    kind: str
    data: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """Charts, sentences and tables under one heading; a brief one's tables are also printed on the console.

    Where a section is paired, its narrow tables stand side by side. A folded one is for looking things up.
    """

    heading: str
    tables: tuple[Table, ...] = ()
    brief: bool = True
    charts: tuple[Chart, ...] = ()
    paired: bool = False
    folded: bool = False
    sentences: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it has nothing to show."""
        return not self.tables and not self.charts and not self.sentences

    def of(self, shown: Iterable[Table | Chart | None]) -> Self:
        """The same with what has something to show; a table of one number becomes a sentence."""
        every = list(shown)
        tables = [it for it in every if isinstance(it, Table) and it.rows]
        return replace(
            self,
            tables=tuple(table for table in tables if not table.sentence),
            sentences=tuple(table.sentence for table in tables if table.sentence),
            charts=tuple(it for it in every if isinstance(it, Chart)),
        )

    @property
    def long_folded(self) -> Self:
        """The same with its long tables folded."""
        folded = (replace(it, folded=it.folded or it.is_long) for it in self.tables)
        return replace(self, tables=tuple(folded))


@dataclass(frozen=True)
class Page:
    """A study as readers see it, in reading order.

    `banner` says what stands in for something else, once; `answers` and `charts` are the first screen. A
    calibration has `findings` in their place.
    """

    title: str
    facts: str
    notices: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...]
    banner: tuple[str, ...] = ()
    answers: tuple[AnswerRow, ...] = ()
    findings: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()


def rounded(value: float | None) -> float | None:
    """Four significant digits: more than a drawing shows, and less than a file must carry."""
    return None if value is None else float(f"{value:.3e}")
