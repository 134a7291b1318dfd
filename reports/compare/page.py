"""The page of a comparison: what differs, what was found in a few sentences, and the tables by measure."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import log

from reports.cells_csv.sides import PUBLISHED, Side
from reports.compare.differences import Difference, differences, differences_table, listed, warnings
from reports.compare.failures import FEWER, MORE, failures, failures_table
from reports.compare.matching import FASTER, MAIN, P50, RATE, SLOWER, TAILS, VERDICTS, Match, matches
from reports.compare.penalty import penalty_said, penalty_table
from reports.compare.tables import disqualified, lonely_cells, measure_tables, sides_table
from reports.format import digits, plural
from reports.page.page import Page, Section


def compare_page(sides: Sequence[Side], place_of: Callable[[str], str]) -> Page:
    """Everything that is said of two sides or more, the first being the base; empty sections are left out.

    `place_of` turns a side's place into what readers may see of it.
    """
    base, *others = sides
    found = differences(sides)
    places = (side.place if side.kind == PUBLISHED else place_of(side.place) for side in sides)
    noted = (f"{side.label}: {text}" for side in sides for text in side.notices)
    sections = (
        Section("What differs").of([differences_table(sides, found)]),
        Section("Cell by cell").of([*measure_tables(base, others, MAIN), failures_table(base, others)]),
        Section("gRPC's penalty").of([penalty_table(base, others)]),
        Section("Tails", brief=False).of(measure_tables(base, others, TAILS)),
        Section("Doubts").of([disqualified(sides)]),
        Section("The sides", brief=False).of([sides_table(sides), lonely_cells(sides)]),
    )
    return Page(
        title=f"Comparison: {' and '.join(side.name for side in others)} beside {base.name}",
        facts=_facts(sides),
        notices=(*warnings(sides, found), *noted),
        findings=tuple(sentence for sentence in findings(sides, found) if sentence),
        sections=tuple(section for section in sections if not section.empty),
        commands=(f"python -m reports compare {shlex.join(places)}",),
    )


def _facts(sides: Sequence[Side]) -> str:
    """The base and the others by their letters, and how many cells all have."""
    base, *others = sides
    common = set.intersection(*(set(side.cells) for side in sides))
    named = ", ".join(f"{side.letter}: {side.name}" for side in others)
    return f"Base {base.letter}: {base.name}, {named}; {plural(len(common), 'cell')} in common"


def findings(sides: Sequence[Side], found: Sequence[Difference]) -> Iterator[str]:
    """The sentences, what differs first."""
    base, *others = sides
    yield what_differs(sides, found)
    for other in others:
        yield from _against(base, other)
    yield " ".join(_disclosed(sides))


def _disclosed(sides: Sequence[Side]) -> Iterator[str]:
    """What stands in for something else, each once, with its sides where it is not so on all."""
    said = {side.letter: dict.fromkeys((*side.stand_ins.values(), *side.said)) for side in sides}
    for text in dict.fromkeys(text for of in said.values() for text in of):
        letters = [letter for letter, of in said.items() if text in of]
        yield text if len(letters) == len(sides) else f"{' and '.join(letters)}: {text}"


def what_differs(sides: Sequence[Side], found: Sequence[Difference]) -> str:
    """The first few of them with their values."""
    silent = " and ".join(side.letter for side in sides if not side.known)
    unknown = f" Nothing else is known of what {silent} ran on." if silent else ""
    if not found:
        return f"Nothing differs in what the sides tell of what they ran on, sent and asked for.{unknown}"
    return f"What differs: {listed(sides, found)}.{unknown}"


def _against(base: Side, other: Side) -> Iterator[str]:
    pair, common = list(matches(base, other)), base.cells.keys() & other.cells.keys()
    head = f"{other.label} against {base.label}"
    if not pair:
        cells = plural(len(common), "common cell")
        why = f"no measure in common in {cells}" if common else "no cell in common"
        yield f"{head}: {why}, so nothing can be compared."
        return
    yield f"{head}: {plural(len(common), 'cell')} in common{_alone(base, other)}. {_verdicts(pair)}"
    yield _biggest(base, other, pair)
    yield _failed(base, other)
    yield penalty_said(base, other)


def _alone(base: Side, other: Side) -> str:
    """How many cells only one of both has; empty where both have the same."""
    pairs = ((base, other), (other, base))
    counts = {one.letter: len(one.cells.keys() - two.cells.keys()) for one, two in pairs}
    told = [f"{count:,} only in {letter}" for letter, count in counts.items() if count]
    return f", {' and '.join(told)}" if told else ""


def _verdicts(pair: Sequence[Match]) -> str:
    """How many cells came out how, by images per second and by p50."""
    told = []
    for measure in (RATE, P50):
        counts = Counter(it.verdict for it in pair if it.measure == measure)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        told += [f"{measure.title}: {said}."] if said else []
    return " ".join(told) or "Neither images per second nor p50 stand on both sides."


def _biggest(base: Side, other: Side, pair: Sequence[Match]) -> str:
    """The cell with the greatest change among those that show one; empty where none does and some differ."""
    if all(it.ratio.ratio == 1 for it in pair):
        return f"All ratios of {other.letter} over {base.letter} are 1."
    changed = [it for it in pair if it.verdict in (FASTER, SLOWER)]
    shown = [it for it in changed if it.measure in (RATE, P50)] or changed
    if not shown:
        return ""
    most = max(shown, key=lambda it: abs(log(it.ratio.ratio)))
    said = f"The biggest change of {other.letter}: {most.verdict},"
    values = f"{digits(most.base.median)} in {base.letter}, {digits(most.other.median)} in {other.letter}"
    return f"{said} {most.cell}, {most.measure.unit} {values}, {most.ratio.times}."


def _failed(base: Side, other: Side) -> str:
    counts = Counter(it.verdict for it in failures(base, other) if it.any)
    told = [f"{plural(counts[word], 'cell')} with {word}" for word in (MORE, FEWER) if counts[word]]
    return f"{other.letter} has {' and '.join(told)}." if told else ""
