"""The tables that put a study of growth beside the published one: users on instances or GPUs, and costs."""

from collections.abc import Iterator, Mapping

from reports.format import MISSING
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Footnotes, Table, TableCell, words
from reports.published_figures.figures import Published, read_published
from reports.published_figures.rates import sourced
from reports.stats.figures import compute_ms, images_per_s, latency_ms
from reports.stats.repeats import Runs, repeats
from reports.study.study import Study
from reports.summary.summary import Summary

STUDY = "step6b"
HEADS = (
    *("endpoint", "users", "images/s", "published", "p50 ms", "published"),
    *("queue ms", "compute ms", "no execution of their own %"),
)
CAPTION = (
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
    ("1 × RTX 4080", "0.092", "24.3", "0.001"),
    ("1 × A100", "0.85", "64.3", "0.004"),
    ("4 × RTX 4080", "0.30–2.00", "43.2", "0.002–0.013"),
)
"""As they were published with step 6B: hardware, $ an hour, images/s, $ for 1,000 images."""


def of_growth(study: Study) -> bool:
    """Whether it is the study that has this published twin."""
    return str(study.header["study"]) == STUDY


def growth_beside(study: Study) -> Table:
    """One row for each way and number of users, medians over its repeats, beside theirs of as many users."""
    notes = Footnotes()
    cells = list(_cells(study)) if of_growth(study) else []
    theirs = {it.level: it for it in read_published(STUDY)}
    rows = tuple(_row(study, runs, theirs, notes) for runs in cells)
    said = disclosures(study, (runs[0].endpoint for runs in cells))
    shared = (repeats(study), *(text for text in said if text not in notes.texts))
    numeric = frozenset(range(1, len(HEADS)))
    return Table("Beside step 6B: users", CAPTION, HEADS, rows, notes.texts, numeric, shared)


def _cells(study: Study) -> Iterator[Runs]:
    for way in study.ways:
        own = [run for run in study.runs if run.way == way and run.load == "closed" and run.batch == 1]
        for level in sorted({run.level for run in own if not run.is_floor}):
            yield [run for run in own if run.level == level]


def _row(
    study: Study, runs: Runs, theirs: Mapping[float, Published], notes: Footnotes
) -> tuple[TableCell, ...]:
    run = runs[0]
    said, it = stand_in(study, run.endpoint), theirs.get(run.level)
    it = it if it and it.payload == run.payload else None
    published = (it.images_per_s, it.latency_p50_ms) if it else (None, None)
    rate, p50 = (sourced(value, it, notes) if it else TableCell(MISSING) for value in published)
    return (
        TableCell(study.named(run.way), notes.marks([said] if said else [])),
        TableCell(f"{run.level:g}"),
        number(runs, images_per_s, notes),
        rate,
        number(runs, latency_ms, notes),
        p50,
        number(runs, queue_ms, notes),
        number(runs, compute_ms, notes),
        number(runs, shared_pct, notes),
    )


def queue_ms(run: Summary) -> float | None:
    """The server's queue per request in milliseconds."""
    return None if run.server_queue_ns is None else run.server_queue_ns / 1e6


def shared_pct(run: Summary) -> float | None:
    """The share of requests without an execution of their own, in percent."""
    return None if run.shared_share is None else 100 * run.shared_share


def costs_beside(study: Study) -> Table:
    """What was published of costs, beside the costs by a declared price; none for another study."""
    heads = ("published hardware", "$ an hour", "images/s", "$ per 1,000 images")
    rows = COSTS if of_growth(study) else ()
    return words("Beside step 6B: costs as published", heads, rows, numeric=(1, 2, 3))
