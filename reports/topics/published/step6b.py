"""Step 6B: more and more users beside the published ones, and what that study stated of costs and scaling."""

from collections.abc import Iterable, Sequence

from reports.cells_csv.rows import read_published
from reports.format import MISSING
from reports.page.question import Question
from reports.page.study_table import ENDPOINT, Columns, cell, figure, study_table, text
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_figures.figures import P50, RATE, Figure, sourced
from reports.stats.figures import compute_ms, images_per_s, in_ms, p50_ms
from reports.stats.repeats import Runs, grouped
from reports.study.study import Study
from reports.summary.summary import Summary

GROWTH = "step6b"
GROWTH_CAPTION = (
    "Batch 1. Queue and compute are the server's own, means per request; the last column is the share of "
    "requests that shared another's execution: 1 − executions ÷ requests. Published is what others measured "
    "on four RTX 4080 behind one Triton, with a client far away: machine, network and client differ from "
    "this study's all at once, so no ratio of the two would mean anything. Over all users they state 17.9 ms "
    "a request on the server, of which 8.8 queue and 8.4 compute, and 560 executions for 721 requests: 22 %."
)
SCALING = (
    "Published: four RTX 4080 made 1.8 times the images/s of one, which is 45 %. That is 43.2 with 32 users "
    "at batch 1 over 24.3 with one user at batch 32, from single runs over the internet: two loads, not one, "
    "and what limited either is not known."
)
COSTS = (
    ("1 × RTX 4080", "0.092", "24.3", "1"),
    ("1 × A100", "0.85", "64.3", "4"),
    ("4 × RTX 4080", "0.30–2.00", "43.2", "2–13"),
)
"""As published with step 6B, its $ for 1,000 images times 1,000: hardware, $ an hour, images/s, $."""


def of_growth(study: Study) -> bool:
    """Whether it is the study that has this published twin."""
    return str(study.header["study"]) == GROWTH and study.of_published_study


def shared_pct(run: Summary) -> float | None:
    """The share of requests without an execution of their own, in percent: 1 − executions ÷ requests.

    By Triton's counts of images and executions; None where they are not known.
    """
    executed = run.server.executed_batch
    return 100 * max(0.0, 1 - run.batch / executed) if executed else None


def _theirs(runs: Runs, value: Figure, notes: Footnotes) -> TableCell:
    """What was published of as many users and the same payload."""
    it = {it.level: it for it in read_published(GROWTH)}.get(runs[0].level)
    return sourced(value(it), it, notes) if it and it.payload == runs[0].payload else TableCell(MISSING)


COLUMNS: Sequence[Columns[Runs]] = (
    ENDPOINT,
    text("users", lambda runs: f"{runs[0].level:g}"),
    figure("images/s", images_per_s),
    cell("published", lambda runs, notes: _theirs(runs, RATE, notes)),
    figure("p50 ms", p50_ms),
    cell("published", lambda runs, notes: _theirs(runs, P50, notes)),
    figure("queue wait ms", in_ms("server.queue_ns")),
    figure("compute ms", compute_ms),
    figure("no execution of their own %", shared_pct),
)


def growth_beside(study: Study) -> Table:
    """One row for each way and number of users, by its repeats, beside theirs of as many users."""
    cells = _cells(study) if of_growth(study) else ()
    return study_table(study, "Beside step 6B: users", GROWTH_CAPTION, COLUMNS, cells)


def _cells(study: Study) -> Iterable[Runs]:
    closed = [run for run in study.runs if run.closed and run.batch == 1 and not run.is_floor]
    ordered = study.ordered(closed, lambda run: run.level)
    return grouped(ordered, lambda run: (run.way, run.level)).values()


def costs_beside(study: Study) -> Table:
    """What was published of costs, beside the costs by a declared price; none for another study."""
    heads = ("published hardware", "$ an hour", "images/s", "$ per million images")
    rows = COSTS if of_growth(study) else ()
    return table_of("Beside step 6B: costs as published", heads, rows, numeric=(1, 2, 3))


STEP6B = Question("step6b", "Results", (growth_beside,), place=3, applies=of_growth)
COSTS_ASKED = Question("step6b-costs", "Load and cost", (costs_beside,), place=3, applies=of_growth)
