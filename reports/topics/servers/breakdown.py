"""Where the time went and what was in the way: the two tables of attribution, a row for each run."""

from collections.abc import Iterable, Sequence
from math import floor, log10

from reports.format import MISSING, NS_PER_MS
from reports.page.disclosures import disclosures
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.summary.breakdown import PARTS, Part, parts_of
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_head

HEADS = {
    "send_delay": ("delay", "send delay"),
    "encode": ("enc", "encode"),
    "send": ("send", "send"),
    "network": ("net", "network"),
    "server_queue": ("queue", "the server's queue"),
    "server_compute": ("comp", "its compute"),
    "server_other": ("other", "its other parts"),
    "receive": ("recv", "receive"),
    "decode": ("dec", "decode"),
    "unexplained": ("unexpl", "unexplained"),
}
"""The head of each part's column, short since there are many, and what the caption calls it."""
NO_SERVER = "the server's parts are not known: unexplained holds its time"
NO_PATH = "the connections were not looked at: unexplained holds the network's time"


def in_the_way(study: Study) -> Table:
    """One row for each run that has a limit, with the evidence; the advice is a note, since many share it."""
    notes = Notes()
    rows = tuple(
        (
            run_head(study, run, notes),
            Cell(run.limit.code, notes.marks([run.limit.advice])),
            Cell(run.limit.evidence),
        )
        for run in study.started
        if run.limit
    )
    return Table(
        "What is in the way",
        "The one thing that keeps each run from going faster, by what was measured; below, what would help.",
        ("run", "limit", "evidence"),
        rows,
        notes.texts,
        shared=_unsaid(study, notes),
    )


def where_the_time_goes(study: Study) -> Table:
    """One row for each run with a success: its mean latency and the parts that add up to it."""
    notes = Notes()
    runs = [run for run in study.started if run.latency_mean_ns is not None]
    names = _measured(map(parts_of, runs))
    rows = tuple((run_head(study, run, notes), *_numbers(run, names, notes)) for run in runs)
    heads = ("run", "mean", *(HEADS[name][0] for name in names), "%")
    legend = [f"{head}: {said}" for head, said in map(HEADS.__getitem__, names) if head != said]
    return Table(
        "Where the time goes",
        "Milliseconds of a request's mean latency; a row's parts add up to it. "
        f"{'; '.join([*legend, '%: the unexplained share'])}.",
        heads,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(heads))),
        shared=_unsaid(study, notes),
    )


def _unsaid(study: Study, notes: Notes) -> tuple[str, ...]:
    said = disclosures(study, (run.endpoint for run in study.started))
    return tuple(text for text in said if text not in notes.texts)


def _measured(found: Iterable[Sequence[Part]]) -> list[str]:
    """The parts that some run measured, in the order of the sum: a column of dashes tells nothing."""
    known = {part.name for parts in found for part in parts if part.ns is not None}
    return [name for name in PARTS if name in known]


def _numbers(run: Summary, names: Sequence[str], notes: Notes) -> list[Cell]:
    mean_ns = run.latency_mean_ns or 0.0
    parts = {part.name: part for part in parts_of(run)}
    texts = [aligned_ms(parts[name].ns, mean_ns) for name in names]
    lacking = {NO_SERVER: run.server_ns is None, NO_PATH: run.network_ns is None}
    share = parts["unexplained"].share
    marks = notes.marks(text for text, is_lacking in lacking.items() if is_lacking)
    percent = Cell(MISSING if share is None else f"{round(100 * share)}", marks)
    return [Cell(aligned_ms(mean_ns, mean_ns)), *map(Cell, texts), percent]


def aligned_ms(value_ns: float | None, mean_ns: float) -> str:
    """Milliseconds with the decimals of the mean they are a part of: four digits of it, at most to the µs.

    So the numbers of a row can be added up by eye.
    """
    if value_ns is None:
        return MISSING
    mean_ms = mean_ns / NS_PER_MS
    decimals = min(3, max(0, 3 - floor(log10(mean_ms)))) if mean_ms > 0 else 0
    rounded = round(value_ns / NS_PER_MS, decimals) + 0.0  # no -0.00
    return f"{rounded:,.{decimals}f}"
