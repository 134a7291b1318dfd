"""The tables that put a study's figures over a link beside those that were published of one like it."""

from collections.abc import Callable, Mapping, Sequence

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import Runs, Value, absence, repeats, resting_on, taints
from reports.page.table import Cell, Notes, Rows, Table
from reports.published_figures.figures import Published, beside, read_published
from reports.stats.spread import spread_of
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.payloads.matrix import images_per_s, latency_ms

OURS, THEIRS, RATIO = ("ours", "beside their", "load"), "published", "ratio"
AS_PUBLISHED = {"http": ("", "per-user"), "grpc": ("shared", "same-args")}
"""Channels by protocol, as the published clients had them; older ledgers do not tell HTTP's."""
TITLE = "Beside the published figures"
CAPTION = (
    "Medians (lowest–highest of the repeats) over the emulated link; published is what others measured, with "
    "another client and server, over the path that it models. Its rate and loss were fitted to some of these "
    "figures: where ours agree they are consistent with theirs, which is no proof. b is batch, c is users."
)
Figures = Mapping[str, Sequence[Published]]


def published_figures(study: Study) -> Figures:
    """The published figures beside those over each link that models such a study's, by the link's name."""
    named = {str(link.get("name")): str(link.get("published") or "") for link in study.links}
    used = {run.link for run in study.runs}
    found = {link: read_published(name) for link, name in named.items() if link in used}
    return {link: figures for link, figures in found.items() if figures}


def rates_beside(study: Study, figures: Figures) -> Table:
    """Images per second, one row for each cell over such a link that has a published twin."""
    return _beside(
        study, figures, ("images per second", "images/s"), images_per_s, lambda it: it.images_per_s
    )


def latencies_beside(study: Study, figures: Figures) -> Table:
    """The serial p50, one row for each cell over such a link that has a published twin."""
    return _beside(study, figures, ("serial p50", "p50 ms"), latency_ms, lambda it: it.latency_p50_ms)


def _beside(
    study: Study,
    figures: Figures,
    words: tuple[str, str],
    value: Value,
    published: Callable[[Published], float | None],
) -> Table:
    """The table of one figure, `words` being what it is and the head of its column."""
    notes = Notes()
    rows = tuple(
        (*_head(study, runs, it, notes), *_compared(runs, value, theirs, it, notes))
        for runs, it in _twins(study, figures)
        if (theirs := published(it)) is not None
    )
    return _table(study, figures, f"{TITLE}: {words[0]}", (*OURS, words[1], THEIRS, RATIO), rows, notes)


def _table(
    study: Study, figures: Figures, title: str, heads: tuple[str, ...], rows: Rows, notes: Notes
) -> Table:
    said = disclosures(study, (run.endpoint for run in study.runs if run.link in figures))
    shared = (repeats(study), *(text for text in said if text not in notes.texts))
    return Table(title, CAPTION, heads, rows, notes.texts, frozenset(range(3, len(heads))), shared)


def _twins(study: Study, figures: Figures) -> list[tuple[Runs, Published]]:
    """The repeats of each cell over such links that has a published twin, with it."""
    cells = _cells(study, figures)
    return [(runs, it) for runs in cells if (it := beside(runs[0], figures[runs[0].link]))]


def _cells(study: Study, figures: Figures) -> list[Runs]:
    """The repeats of each closed cell over such links, by way, batch and users."""
    cells: dict[str, list[Summary]] = {}
    for run in study.runs:
        if run.link in figures and run.load == "closed" and not run.is_floor and as_published(run):
            cells.setdefault(run.cell, []).append(run)
    ways = study.ways
    return sorted(cells.values(), key=lambda runs: (ways.index(runs[0].way), runs[0].level, runs[0].batch))


def as_published(run: Summary) -> bool:
    """Whether a run used connections as theirs did: HTTP one for each user, gRPC one for all.

    A single user has one connection in any case.
    """
    if run.congestion or (run.workers or 1) > 1:
        return False
    return run.serial or run.channels in AS_PUBLISHED.get(run.protocol, ())


def _head(study: Study, runs: Runs, it: Published, notes: Notes) -> tuple[Cell, ...]:
    run, said = runs[0], stand_in(study, runs[0].endpoint)
    ours = Cell(study.named(run.way), notes.marks([said] if said else []))
    return ours, Cell(it.endpoint), Cell(f"b{run.batch}/c{run.level:g}")


def _compared(
    runs: Runs, value: Value, theirs: float | None, it: Published, notes: Notes
) -> tuple[Cell, ...]:
    """Ours, theirs and the ratio."""
    ours = measured(runs, value, notes)
    ratio = f"{digits(ours.value / theirs)}×" if ours.value is not None and theirs else MISSING
    return ours, sourced(theirs, it, notes), Cell(ratio)


def sourced(value: float | None, it: Published, notes: Notes) -> Cell:
    """A published number with the digits that it was published with, marked with where that was."""
    if value is None:
        return Cell(MISSING)
    return Cell(f"{value:,.6g}", notes.marks([f"published: {it.source}"]))


def measured(runs: Runs, value: Value, notes: Notes) -> Cell:
    """The median with the lowest and highest of the repeats that it rests on, and its marks."""
    behind = resting_on(runs, value)
    found = spread_of(behind, value)
    if found is None:
        return Cell(MISSING, notes.marks([absence(runs)]))
    return Cell(str(found), notes.marks(taints(behind)), found.median)
