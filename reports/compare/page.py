"""The page of a comparison: what differs, what was found, the tables by measure, where they come from."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from reports.cells_csv.side import PUBLISHED, Side
from reports.compare.differences import differences, differences_table, warnings
from reports.compare.failures import failures_table
from reports.compare.findings import findings
from reports.compare.matching import MAIN, TAILS
from reports.compare.penalty import penalty_table
from reports.compare.tables import disqualified, lonely_cells, measure_tables, sides_table
from reports.format import plural
from reports.page.page import Page, Section
from reports.page.table import Table


def compare_page(sides: Sequence[Side], place_of: Callable[[str], str] = str) -> Page:
    """Everything that is said of two sides or more, the first being the base; empty sections are left out.

    `place_of` turns a side's place into what readers may see of it.
    """
    base, *others = sides
    found = differences(sides)
    sections = (
        _section("What differs", [differences_table(sides, found)]),
        _section("Cell by cell", [*measure_tables(base, others, MAIN), failures_table(base, others)]),
        _section("gRPC's penalty", [penalty_table(base, others)]),
        _section("Tails", measure_tables(base, others, TAILS), brief=False),
        _section("Doubts", [disqualified(sides)]),
        _section("The sides", [sides_table(sides), lonely_cells(sides)], brief=False),
    )
    return Page(
        title=f"Comparison: {' and '.join(side.name for side in others)} beside {base.name}",
        facts=_facts(sides),
        notices=(*warnings(sides, found), *_ends(sides)),
        findings=tuple(sentence for sentence in findings(sides, found) if sentence),
        sections=tuple(section for section in sections if section.tables),
        commands=(
            f"python -m reports compare {' '.join(shlex.quote(_place(it, place_of)) for it in sides)}",
        ),
    )


def _section(heading: str, tables: Iterable[Table], brief: bool = True) -> Section:
    return Section(heading=heading, tables=tuple(table for table in tables if table.rows), brief=brief)


def _place(side: Side, place_of: Callable[[str], str]) -> str:
    return side.place if side.kind == PUBLISHED else place_of(side.place)


def _facts(sides: Sequence[Side]) -> str:
    """The base and the others by their letters, and how many cells all have."""
    base, *others = sides
    common = set.intersection(*(set(side.cells) for side in sides))
    named = ", ".join(f"{side.letter}: {side.name}" for side in others)
    return f"Base {base.letter}: {base.name}, {named}; {plural(len(common), 'cell')} in common"


def _ends(sides: Sequence[Side]) -> Iterator[str]:
    """What a reader must know of each side as a whole."""
    return (f"{side.label}: {text}" for side in sides for text in side.notices)
