"""Tables of the sides themselves: what each is, which cells it lacks, what disqualifies its runs."""

from collections import Counter
from collections.abc import Sequence

from reports.cells_csv.side import PUBLISHED, STUDY, Side
from reports.format import MISSING
from reports.page.table import Table, words

KINDS = {STUDY: "study", PUBLISHED: "published by others"}


def sides_table(sides: Sequence[Side]) -> Table:
    """One row for each: what it is, and how much of it there is."""
    heads = (
        "side",
        "name",
        "what",
        "study",
        "size",
        "started",
        "ended",
        "cells",
        "runs",
        "disqualified runs",
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
    return words("What was compared", heads, rows, numeric=(7, 8, 9))


def lonely_cells(sides: Sequence[Side]) -> Table:
    """The cells that some side lacks; their numbers are in the reports of those that have them."""
    cells = dict.fromkeys(cell for side in sides for cell in side.cells)
    rows = (
        (cell, *("yes" if cell in side.cells else "no" for side in sides))
        for cell in cells
        if not all(cell in side.cells for side in sides)
    )
    heads = ("cell", *(f"in {side.letter}" for side in sides))
    return words("Cells that a side lacks", heads, rows, folded=True)


def disqualified(sides: Sequence[Side]) -> Table:
    """Which caveats disqualify how many runs of each side, and what to do about each."""
    advice = {doubt.code: doubt.advice for side in sides for row in side.rows for doubt in row.disqualified}
    rows = []
    for side in sides:
        touched = Counter(doubt.code for row in side.rows for doubt in row.disqualified)
        for code, count in sorted(touched.items(), key=lambda item: (-item[1], item[0])):
            cells = dict.fromkeys(row.cell for row in side.rows if code in row.codes)
            rows.append((side.letter, code, count, ", ".join(cells), advice[code]))
    heads = ("side", "caveat", "runs", "cells", "what to do")
    return words("Caveats that disqualify", heads, rows, numeric=[2])
