"""The tables of a comparison: a row for every cell and measure, what each side is, and what it lacks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reports.caveat import caveat
from reports.cells_csv.sides import PUBLISHED, STUDY, Side
from reports.compare.matching import LARGE, MAGNITUDES, UNCONFIRMED, Figure, Match, Measure, matches
from reports.format import MISSING, moment
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.paired import LEAST_REPEATS, NOT_SIGNIFICANT

VALUES = (
    "Values are medians of the valid repeats, percentiles too; a study's own report has geometric means of "
    "images/s and percentiles of all requests. The ratio, candidate over base, is of geometric means, with "
    "the 95 % CI of Welch's t of the logs. With fewer than "
    f"{LEAST_REPEATS} runs on a side a difference is {UNCONFIRMED}. Verdicts are judged of all cells and "
    "measures together: between two sides that do not differ, the chance that any is said to is 5 % (Holm), "
    f"so a CI that just excludes 1 may go with “{NOT_SIGNIFICANT}”. What the machine drifted by from one "
    "study to the other is not covered: it counts as a difference. A ratio up to "
    f"{', '.join(f'{most:g}× is {word}' for most, word in MAGNITUDES)}, and above that {LARGE}."
)
Found = Mapping[str, Mapping[str, Match]]
"""The matches of one measure by cell and by the candidate's role."""
KINDS = {STUDY: "study", PUBLISHED: "published by others"}


def measure_tables(base: Side, others: Sequence[Side], measures: Sequence[Measure]) -> Iterator[Table]:
    """One for each of some measures, where cells have it on both sides; the first says what values are."""
    told = f" {VALUES}"
    for measure in measures:
        found: dict[str, dict[str, Match]] = {cell: {} for cell in base.cells}
        for side in others:
            for it in matches(base, side, [measure]):
                found[it.cell][side.role] = it
        table = _table(base, others, measure, {cell: here for cell, here in found.items() if here})
        if table.rows:
            yield replace(table, caption=table.caption + told)
            told = ""


def _table(base: Side, others: Sequence[Side], measure: Measure, found: Found) -> Table:
    notes = Footnotes()
    rows = (_row(base, others, cell, here, notes) for cell, here in found.items())
    caption = f"{measure.direction} {chance([it for here in found.values() for it in here.values()])}"
    if measure.instead_of:
        caption = f"For cells whose p50 is not known on both sides. {caption}"
    heads = ["cell", f"{base.short} {measure.unit}"]
    for side in others:
        ratio = f"{side.short}/{base.short}" if others[1:] else "ratio"
        heads += [f"{side.short} {measure.unit}", ratio]
        heads += [verdict_head(base, side, others)]
    # The base's value, and of each other side the value and the ratio.
    numeric = (1, *(place for at in range(len(others)) for place in (2 + 3 * at, 3 + 3 * at)))
    return table_of(measure.title, heads, rows, caption=caption, notes=notes, numeric=numeric)


def chance(found: Sequence[Match]) -> str:
    """How many verdicts there are: of comparisons that nothing leaves open."""
    tested = sum(not it.doubts for it in found)
    if not tested:
        return "No comparison has enough valid runs to confirm a difference."
    if tested == 1:
        return "One comparison has enough valid runs for a verdict."
    return f"{tested:,} comparisons have enough valid runs for a verdict."


def verdict_head(base: Side, side: Side, others: Sequence[Side]) -> str:
    return f"{side.short} against {base.short}" if others[1:] else "verdict"


def _row(
    base: Side, others: Sequence[Side], cell: str, here: Mapping[str, Match], notes: Footnotes
) -> tuple[TableCell, ...]:
    first = next(iter(here.values()))
    endpoint = first.base.rows[0].endpoint
    head = TableCell(cell, notes.marks(stand_ins((base, *others), endpoint)))
    values = [cell for side in others for cell in _other(here.get(side.role), notes)]
    return head, _value(first.measure, first.base, notes), *values


def stand_ins(sides: Sequence[Side], endpoint: str) -> Iterator[str]:
    """What stands in for something else behind an endpoint, with the side where it is not so on all."""
    said = [side.stand_ins.get(endpoint, "") for side in sides]
    same = len(set(said)) == 1
    told = (text if same else f"{side.short}: {text}" for side, text in zip(sides, said, strict=True) if text)
    return iter(dict.fromkeys(told))


def _other(match: Match | None, notes: Footnotes) -> tuple[TableCell, ...]:
    if match is None:
        return (TableCell(MISSING),) * 3
    return (
        _value(match.measure, match.other, notes),
        TableCell(match.ratio.times, value=match.ratio.ratio),
        TableCell(match.said, notes.marks(doubt.text for doubt in match.doubts)),
    )


def _value(measure: Measure, found: Figure, notes: Footnotes) -> TableCell:
    """A number, marked with what invalidates a run behind it."""
    doubts = (f"{caveat.code}: {caveat.advice}" for row in found.rows for caveat in row.disqualified)
    return TableCell(measure.form(found.median), notes.marks(doubts), found.median)


def sides_table(sides: Sequence[Side]) -> Table:
    """One row for each: what it is, and how much of it there is."""
    heads = (
        *("role", "name", "what", "study", "size", "started", "ended", "cells", "runs", "invalid runs"),
        "source",
    )
    rows = (
        (
            *(side.role, side.name, KINDS.get(side.kind, side.kind), side.studies),
            side.header.get("size") or MISSING,
            moment(side.header.get("started_utc") or MISSING),
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
    heads = ("cell", *(f"in {side.short}" for side in sides))
    return table_of("Cells without a counterpart", heads, rows, folded=True)


def invalidated(sides: Sequence[Side]) -> Table:
    """Which caveats invalidate how many runs of each side, and what to do about each."""
    rows = []
    for side in sides:
        touched = Counter(found.code for row in side.rows for found in row.disqualified)
        for code, count in sorted(touched.items(), key=lambda item: (-item[1], item[0])):
            cells = dict.fromkeys(row.cell for row in side.rows if code in row.codes)
            rows.append((side.short, code, count, ", ".join(cells), caveat(code, "").advice))
    heads = ("role", "caveat", "runs", "cells", "what to do")
    return table_of("Caveats that invalidate runs", heads, rows, numeric=[2])
