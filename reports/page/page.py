"""A page and its sections: what every format is made from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reports.page.chart import Chart
from reports.page.table import Table

LONG = 24
"""Rows; a table with more is opened on demand."""


@dataclass(frozen=True)
class Section:
    """Charts and tables under one heading; the tables of a brief one are also printed on the console.

    Where a section is paired, its narrow tables stand side by side.
    """

    heading: str
    tables: tuple[Table, ...]
    brief: bool
    charts: tuple[Chart, ...] = ()
    paired: bool = False


@dataclass(frozen=True)
class Page:
    """A study as readers see it, in reading order."""

    title: str
    facts: str
    notices: tuple[str, ...]
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...]


def drawn(*charts: Chart | None) -> tuple[Chart, ...]:
    """Those that have something to show."""
    return tuple(chart for chart in charts if chart)


def filled(sections: Iterable[Section]) -> Iterator[Section]:
    """The sections that have something to show, without their empty tables; long ones are folded."""
    for section in sections:
        tables = tuple(
            replace(table, folded=table.folded or len(table.rows) > LONG)
            for table in section.tables
            if table.rows
        )
        if tables or section.charts:
            yield replace(section, tables=tables)
