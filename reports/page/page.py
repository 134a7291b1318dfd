"""A page, its sections and their charts, as data: what every format is made from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

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


def rounded(value: float | None) -> float | None:
    """Four significant digits: more than a drawing shows, and less than a file must carry."""
    return None if value is None else float(f"{value:.3e}")
