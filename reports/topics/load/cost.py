"""The table of costs: money and energy for an image, at the cell of each way that has the most of them."""

from collections.abc import Iterator

from reports.format import MISSING
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import fastest_cell, images_per_s
from reports.stats.repeats import Runs, Value, repeats
from reports.study.study import Study
from reports.summary.summary import Summary

HEADS = ("endpoint", "cheapest cell", "images/s", "$ per 1,000 images", "images per $", "joules per image")
DECLARED = (
    "The price is the one declared with --usd-per-hour, not measured; it is taken to buy every server of the "
    "study, and the hour to be full of such load."
)
AT_ANY_NUMBER = (
    "It is the same for every number of instances: where each is a GPU that is paid for, multiply it by how "
    "many there are."
)
NO_PRICE = "No price was declared; --usd-per-hour gives it."
POWER = (
    "Joules are of all sampled GPUs over the measure phase, with what they draw idle; the host's own power "
    "is not in them."
)
NO_POWER = "No GPU's power was sampled."


def cost_table(study: Study) -> Table:
    """One row for each way with a success; none where neither a price nor a GPU's power is known."""
    notes = Footnotes()
    cheapest = [runs for runs in _cheapest(study) if any(_known(run) for run in runs)]
    rows = tuple(_row(study, runs, notes) for runs in cheapest)
    said = disclosures(study, (runs[0].endpoint for runs in cheapest))
    costs = [run for runs in cheapest for run in runs]
    priced = DECLARED if any(run.images_per_usd is not None for run in costs) else NO_PRICE
    if priced == DECLARED and len({run.instances_asked for run in costs}) > 1:
        priced = f"{DECLARED} {AT_ANY_NUMBER}"
    powered = POWER if any(run.joules_per_image is not None for run in costs) else NO_POWER
    return Table(
        "What an image costs",
        "The cheapest cell is the one with the most images/s, since an hour costs the same at any load. "
        f"{priced} {powered}",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(2, len(HEADS))),
        shared=(repeats(study), *(text for text in said if text not in notes.texts)),
    )


def _cheapest(study: Study) -> Iterator[Runs]:
    for way in study.ways:
        cells: dict[str, list[Summary]] = {}
        for run in study.started:
            if run.way == way and not run.is_floor and images_per_s(run):
                cells.setdefault(run.cell, []).append(run)
        if cells:
            yield fastest_cell(list(cells.values()))


def _known(run: Summary) -> bool:
    return run.images_per_usd is not None or run.joules_per_image is not None


def _row(study: Study, runs: Runs, notes: Footnotes) -> tuple[TableCell, ...]:
    said = stand_in(study, runs[0].endpoint)
    head = TableCell(study.named(runs[0].way), notes.marks([said] if said else []))
    values: tuple[Value, ...] = (
        images_per_s,
        usd_per_thousand,
        lambda run: run.images_per_usd,
        lambda run: run.joules_per_image,
    )
    return head, TableCell(runs[0].cell), *(_number(runs, value, notes) for value in values)


def usd_per_thousand(run: Summary) -> float | None:
    """US dollars for 1,000 images."""
    return 1_000 / run.images_per_usd if run.images_per_usd else None


def _number(runs: Runs, value: Value, notes: Footnotes) -> TableCell:
    """A dash without a reason of its own where it is unknown: the caption gives that."""
    return number(runs, value, notes) if any(value(run) is not None for run in runs) else TableCell(MISSING)
