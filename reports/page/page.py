"""A page, its sections and their charts, as data: what every format is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from reports.page.table import Table

LONG = 24
"""Rows; a table with more is opened on demand."""


@dataclass(frozen=True)
class Chart:
    """A drawing under a title: `kind` names the script's function that draws `data`, which JSON can hold.

    `notes` are sentences below it. Its numbers stand in the tables beside it, or in timeline.csv.
    """

    title: str
    caption: str
    kind: str
    data: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Charts and tables under one heading; the tables of a brief one are also printed on the console.

    Where a section is paired, its narrow tables stand side by side.
    """

    heading: str
    tables: tuple[Table, ...] = ()
    brief: bool = True
    charts: tuple[Chart, ...] = ()
    paired: bool = False

    @property
    def empty(self) -> bool:
        """Whether it has nothing to show."""
        return not self.tables and not self.charts

    def of(self, shown: Iterable[Table | Chart | None]) -> Self:
        """The same with those tables and charts that have something to show."""
        every = list(shown)
        tables = tuple(it for it in every if isinstance(it, Table) and it.rows)
        return replace(self, tables=tables, charts=tuple(it for it in every if isinstance(it, Chart)))

    @property
    def long_folded(self) -> Self:
        """The same with its long tables folded."""
        folded = (replace(it, folded=it.folded or len(it.rows) > LONG) for it in self.tables)
        return replace(self, tables=tuple(folded))


@dataclass(frozen=True)
class Page:
    """A study as readers see it, in reading order."""

    title: str
    facts: str
    notices: tuple[str, ...]
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...]


def rounded(value: float | None) -> float | None:
    """Four significant digits: more than a drawing shows, and less than a file must carry."""
    return None if value is None else float(f"{value:.3e}")
