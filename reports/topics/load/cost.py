"""The table of costs: money and energy for an image, at the cell of each way that has the most of them."""

from collections.abc import Sequence

from reports.fold.records import ratio
from reports.fold.samples import Cost
from reports.format import MISSING
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import ENDPOINT, Columns, cell, figure, measured, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.failures import rankable, unranked
from reports.stats.figures import fastest_cell, images_per_s
from reports.stats.percentiles import mean_over
from reports.stats.repeats import Runs, Value, by_way
from reports.study.study import Study
from reports.summary.summary import Summary

DECLARED = (
    "The price is the one declared with --usd-per-hour, not measured. It is taken to pay for every server of "
    "the study, under this load for the whole hour."
)
AT_ANY_NUMBER = (
    "It is the same for any number of instances: where each is a GPU that is paid for, multiply it by their "
    "number."
)
NO_PRICE = "No price was declared (--usd-per-hour)."
POWER = (
    "Joules are those of all sampled GPUs over the measure phase, idle power included and the host's power "
    "not."
)
NO_POWER = "No GPU's power was sampled."


def _declared(head: str, value: Value) -> Columns[Runs]:
    """A dash without a reason of its own where it is unknown: the caption gives that."""
    return cell(
        head,
        lambda runs, notes: (
            measured(runs, value, notes)
            if any(value(run) is not None for run in runs)
            else TableCell(MISSING)
        ),
    )


COLUMNS: Sequence[Columns[Runs]] = (
    ENDPOINT,
    text("cheapest cell", lambda runs: runs[0].cell, numeric=False),
    figure("images/s", images_per_s),
    _declared("$ per million images", lambda run: usd_per_million(run)),
    _declared("joules per image", lambda run: run.cost.joules_per_image),
)


def usd_per_million(run: Summary) -> float | None:
    """US dollars for a million images at the rate of a run, by the declared price."""
    return ratio(1_000_000, run.cost.images_per_usd)


def cost_answer(study: Study) -> AnswerRow | None:
    """The cheapest cell by the declared price; None without one."""
    real = rankable(run for run in study.started if not run.is_floor)
    runs = [run for run in real if not run.tainted and usd_per_million(run)]
    if not runs:
        return None
    cheapest = fastest_cell(runs)
    price = mean_over(cheapest, usd_per_million)
    if not price:
        return None
    said = f"${price.alone()} per million images at the cheapest, {cheapest[0].cell}."
    several = AT_ANY_NUMBER if len({run.instances for run in runs}) > 1 else ""
    return AnswerRow("Cost", said, f"By the price that --usd-per-hour declared. {several}".rstrip())


def cost_table(study: Study) -> Table:
    """One row for each way with a cell to rank; none where neither a price nor a GPU's power is known."""
    real = [run for run in study.started if not run.is_floor]
    every = map(fastest_cell, by_way(study, real).values())
    cheapest = [runs for runs in every if any(run.cost != Cost() for run in runs)]
    shown = [run for runs in cheapest for run in runs]
    priced = DECLARED if any(run.cost.images_per_usd is not None for run in shown) else NO_PRICE
    if priced == DECLARED and len({run.instances for run in shown}) > 1:
        priced = f"{DECLARED} {AT_ANY_NUMBER}"
    powered = POWER if any(run.cost.joules_per_image is not None for run in shown) else NO_POWER
    return study_table(
        study,
        "What an image costs",
        "The cheapest cell is the one with the most images/s, since an hour costs the same at any load. "
        f"{priced} {powered} {unranked(real)}".rstrip(),
        COLUMNS,
        cheapest,
    )


COST = Question("cost", "Load and cost", (cost_table,), cost_answer, Theme.COST, place=2)
