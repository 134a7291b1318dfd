"""The tables of a comparison: what each side is and lacks, then for each measure a row for every cell."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from reports.caveat import caveat
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import PUBLISHED, STUDY, Side
from reports.compare.matching import Match, Measure, matches
from reports.format import MISSING, digits
from reports.page.table import Footnotes, Table, TableCell, table_of

VALUES = (
    "Values are medians of the repeats that nothing disqualifies. A ratio is of geometric means, with its "
    "95 % interval in brackets, which takes two runs on each side."
)
Found = Mapping[str, Mapping[str, Match]]
"""The matches of one measure by cell and by the other side's letter."""
KINDS = {STUDY: "study", PUBLISHED: "published by others"}


def measure_tables(base: Side, others: Sequence[Side], measures: Sequence[Measure]) -> Iterator[Table]:
    """One for each of some measures, without rows where no cell has it on both sides."""
    for measure in measures:
        found: dict[str, dict[str, Match]] = {cell: {} for cell in base.cells}
        for side in others:
            for it in matches(base, side, [measure]):
                found[it.cell][side.letter] = it
        yield _table(base, others, measure, {cell: here for cell, here in found.items() if here})


def _table(base: Side, others: Sequence[Side], measure: Measure, found: Found) -> Table:
    notes = Footnotes()
    rows = (_row(base, others, cell, here, notes) for cell, here in found.items())
    caption = f"{measure.direction} {chance([it for here in found.values() for it in here.values()])}"
    if measure.instead_of:
        caption = f"Of cells whose p50 is not known on both sides. {caption}"
    heads = ["cell", f"{base.letter} {measure.unit}"]
    for side in others:
        heads += [f"{side.letter} {measure.unit}", f"{side.letter}/{base.letter}"]
        heads += [verdict_head(base, side, others)]
    # The base's value, and of each other side the value and the ratio.
    numeric = (1, *(place for at in range(len(others)) for place in (2 + 3 * at, 3 + 3 * at)))
    return table_of(
        measure.title, heads, rows, caption=caption, notes=notes, numeric=numeric, shared=[VALUES]
    )


def chance(found: Sequence[Match]) -> str:
    """How many of the comparisons may be off by chance: those that nothing leaves open."""
    tested = sum(not it.doubts for it in found)
    if not tested:
        return "No comparison allows a verdict."
    if tested == 1:
        return "One comparison allows a verdict."
    return (
        f"{tested:,} comparisons allow a verdict: at 95 % about 1 in 20 shows a difference by chance where "
        "there is none."
    )


def verdict_head(base: Side, side: Side, others: Sequence[Side]) -> str:
    return f"{side.letter} against {base.letter}" if others[1:] else "verdict"


def _row(
    base: Side, others: Sequence[Side], cell: str, here: Mapping[str, Match], notes: Footnotes
) -> tuple[TableCell, ...]:
    first = next(iter(here.values()))
    endpoint = first.base.rows[0].endpoint
    head = TableCell(cell, notes.marks(stand_ins((base, *others), endpoint)))
    values = [cell for side in others for cell in _other(here.get(side.letter), notes)]
    return head, _value(first.base.median, first.base.rows, notes), *values


def stand_ins(sides: Sequence[Side], endpoint: str) -> Iterator[str]:
    """What stands in for something else behind an endpoint, with the side where it is not so on all."""
    said = [side.stand_ins.get(endpoint, "") for side in sides]
    same = len(set(said)) == 1
    told = (
        text if same else f"{side.letter}: {text}" for side, text in zip(sides, said, strict=True) if text
    )
    return iter(dict.fromkeys(told))


def _other(match: Match | None, notes: Footnotes) -> tuple[TableCell, ...]:
    if match is None:
        return (TableCell(MISSING),) * 3
    return (
        _value(match.other.median, match.other.rows, notes),
        TableCell(match.ratio.times, value=match.ratio.ratio),
        TableCell(match.verdict, notes.marks(match.doubts)),
    )


def _value(value: float, rows: Sequence[Row], notes: Footnotes) -> TableCell:
    """A number, marked with what disqualifies a run behind it."""
    doubts = (f"{caveat.code}: {caveat.advice}" for row in rows for caveat in row.disqualified)
    return TableCell(digits(value), notes.marks(doubts), value)


def sides_table(sides: Sequence[Side]) -> Table:
    """One row for each: what it is, and how much of it there is."""
    heads = (
        *("side", "name", "what", "study", "size", "started", "ended", "cells", "runs", "disqualified runs"),
        "source",
    )
    rows = (
        (
            *(side.letter, side.name, KINDS.get(side.kind, side.kind), side.studies),
            *(side.header.get(name) or MISSING for name in ("size", "started_utc")),
            *(side.status or MISSING, len(side.cells), len(side.rows)),
            sum(bool(row.disqualified) for row in side.rows),
            side.sources or MISSING,
        )
        for side in sides
    )
    return table_of("What was compared", heads, rows, numeric=(7, 8, 9))


def lonely_cells(sides: Sequence[Side]) -> Table:
    """The cells that some side lacks; their numbers are in the reports of those that have them."""
    cells = dict.fromkeys(cell for side in sides for cell in side.cells)
    rows = (
        (cell, *("yes" if cell in side.cells else "no" for side in sides))
        for cell in cells
        if not all(cell in side.cells for side in sides)
    )
    heads = ("cell", *(f"in {side.letter}" for side in sides))
    return table_of("Cells that a side lacks", heads, rows, folded=True)


def disqualified(sides: Sequence[Side]) -> Table:
    """Which caveats disqualify how many runs of each side, and what to do about each."""
    rows = []
    for side in sides:
        touched = Counter(found.code for row in side.rows for found in row.disqualified)
        for code, count in sorted(touched.items(), key=lambda item: (-item[1], item[0])):
            cells = dict.fromkeys(row.cell for row in side.rows if code in row.codes)
            rows.append((side.letter, code, count, ", ".join(cells), caveat(code, "").advice))
    heads = ("side", "caveat", "runs", "cells", "what to do")
    return table_of("Caveats that disqualify", heads, rows, numeric=[2])
