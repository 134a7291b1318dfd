"""The page of a comparison: the answer in a few sentences, and the tables by measure."""

import shlex
from collections.abc import Callable, Iterator, Sequence

from reports.cells_csv.sides import PUBLISHED, Side
from reports.compare.answer import answers
from reports.compare.differences import differences, differences_table, warnings
from reports.compare.failures import failures_table
from reports.compare.mapping import Mapped, mapping_options, mapping_said
from reports.compare.matching import MAIN, TAILS
from reports.compare.penalty import penalty_table
from reports.compare.tables import invalidated, lonely_cells, measure_tables, sides_table
from reports.format import plural, sentence
from reports.page.page import Page, Section


def compare_page(made: Mapped, place_of: Callable[[str], str]) -> Page:
    """Everything that is said of a base and its candidates; empty sections are left out.

    `place_of` turns a side's place into what readers may see of it.
    """
    sides = made.sides
    base, *others = sides
    found = differences(sides)
    places = (side.place if side.kind == PUBLISHED else place_of(side.place) for side in sides)
    noted = (sentence(f"{side.label}: {text}") for side in sides for text in side.notices)
    sections = (
        Section("Cell by cell").of([*measure_tables(base, others, MAIN), failures_table(base, others)]),
        Section("What differs").of([differences_table(sides, found)]),
        Section("gRPC's penalty").of([penalty_table(base, others)]),
        Section("Tails", brief=False).of(measure_tables(base, others, TAILS)),
        Section("Caveats").of([invalidated(sides)]),
        Section("What was compared", brief=False).of([sides_table(sides), lonely_cells(sides)]),
    )
    return Page(
        title=f"Comparison: {' and '.join(side.name for side in others)} against {base.name}",
        facts=_facts(sides),
        notices=(*warnings(sides, found), *mapping_said(made), *noted),
        sections=tuple(section for section in sections if not section.empty),
        commands=(f"inferswarm compare {shlex.join([*places, *mapping_options(made)])}",),
        banner=tuple(_disclosed(sides)),
        answers=tuple(answers(sides, found)),
    )


def _facts(sides: Sequence[Side]) -> str:
    """Every side by its role, how many cells all have, and how many only one of two has."""
    common = set.intersection(*(set(side.cells) for side in sides))
    named = ", ".join(f"{side.role}: {side.name}" for side in sides)
    return f"{sentence(named)}; {plural(len(common), 'cell')} in common{_alone(sides)}"


def _alone(sides: Sequence[Side]) -> str:
    """How many cells only one side has; empty where none has any."""
    counts = {
        side.short: sum(all(cell not in one.cells for one in sides if one is not side) for cell in side.cells)
        for side in sides
    }
    told = [f"{count:,} only in {short}" for short, count in counts.items() if count]
    return f", {' and '.join(told)}" if told else ""


def _disclosed(sides: Sequence[Side]) -> Iterator[str]:
    """What stands in for something else, each once, with its sides where it is not so on all."""
    said = {side.role: dict.fromkeys((*side.stand_ins.values(), *side.said)) for side in sides}
    for text in dict.fromkeys(text for of in said.values() for text in of):
        roles = [role for role, of in said.items() if text in of]
        yield text if len(roles) == len(sides) else f"{sentence(' and '.join(roles))}: {text}"
