"""What becomes of the seeds' fifth hypothesis between the sides: its table, and its sentence."""

from collections.abc import Sequence

from reports.cells_csv.side import Side
from reports.compare.penalty import penalties
from reports.compare.tables import stand_ins
from reports.format import digits
from reports.page.table import Cell, Notes, Table
from reports.published_figures.hypotheses import LESS, MORE
from reports.published_figures.judge import CLAIMS, INCONCLUSIVE, PARTLY, PUBLISHED

CAPTION = (
    f"H5 of the published studies: {CLAIMS['H5']}. gRPC's serial p50 at batch 1 over HTTP's on each side, "
    "with 95 % intervals, and the one ratio over the other. True where its interval leaves 1 out, false "
    f"where it lies within {LESS:g} to {MORE:g}, not tested where the sides do not state two different GPUs. "
    "The claim is of the GPU alone; what else differs stands above."
)


def penalty_table(base: Side, others: Sequence[Side]) -> Table:
    """One row for each backend and other side."""
    notes = Notes()
    rows = [
        (
            Cell(found.name, notes.marks(stand_ins((base, side), f"{found.backend}-grpc"))),
            Cell(side.letter),
            *(Cell(ratio.times) for ratio in (found.base, found.other, found.change)),
            Cell(found.verdict, notes.marks([found.untested] if found.untested else found.doubts)),
        )
        for side in others
        for found in penalties(base, side)
    ]
    heads = (
        "backend",
        "side",
        f"gRPC/HTTP in {base.letter}",
        "in the side",
        f"side/{base.letter}",
        "differs",
    )
    return Table(
        *("Hypothesis H5: gRPC's penalty at batch 1", CAPTION, heads, tuple(rows), notes.texts),
        numeric=frozenset({2, 3, 4}),
    )


def penalty_said(base: Side, other: Side) -> str:
    """What becomes of the hypothesis between two sides; empty where they have no figures of it."""
    found = list(penalties(base, other))
    if not found:
        return ""
    told = {it.verdict for it in found}
    clear = told - {INCONCLUSIVE}
    verdict = PARTLY if len(clear) > 1 else told.pop() if len(told) == 1 else INCONCLUSIVE
    figures = "; ".join(
        f"{it.name} {digits(it.base.ratio)}× in {base.letter} and {digits(it.other.ratio)}× in {other.letter}"
        for it in found
    )
    head = f"H5 ({CLAIMS['H5']}), {other.letter} against {base.letter}: {verdict}."
    why = [found[0].untested] if found[0].untested else []
    published = f"Published as: {PUBLISHED['H5']}."
    return " ".join([head, *why, f"gRPC's p50 over HTTP's: {figures}.", published])
