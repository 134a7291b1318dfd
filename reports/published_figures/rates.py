"""A study's figures over a link beside those that were published of one like it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Footnotes, Rows, Table, TableCell
from reports.published_figures.figures import Published, beside, read_published, their_endpoint
from reports.stats.figures import images_per_s, latency_ms, protocol_pairs
from reports.stats.repeats import Runs, Value, absence, repeats, resting_on, taints
from reports.stats.spread import over, spread_of
from reports.study.study import Study
from reports.summary.summary import Summary

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
HEADS = (
    *("ours beside theirs", "batch", "HTTP", "gRPC", "gRPC/HTTP"),
    *("published HTTP", "gRPC", "gRPC/HTTP"),
)
BY_LATENCY = "of published p50, since images/s were not published"


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
    notes = Footnotes()
    rows = tuple(
        (*_head(study, runs, it, notes), *_compared(runs, value, theirs, it, notes))
        for runs, it in _twins(study, figures)
        if (theirs := published(it)) is not None
    )
    return _table(study, figures, f"{TITLE}: {words[0]}", (*OURS, words[1], THEIRS, RATIO), rows, notes)


def _table(
    study: Study, figures: Figures, title: str, heads: tuple[str, ...], rows: Rows, notes: Footnotes
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


def _head(study: Study, runs: Runs, it: Published, notes: Footnotes) -> tuple[TableCell, ...]:
    run, said = runs[0], stand_in(study, runs[0].endpoint)
    ours = TableCell(study.named(run.way), notes.marks([said] if said else []))
    return ours, TableCell(it.endpoint), TableCell(f"b{run.batch}/c{run.level:g}")


def _compared(
    runs: Runs, value: Value, theirs: float | None, it: Published, notes: Footnotes
) -> tuple[TableCell, ...]:
    """Ours, theirs and the ratio."""
    ours = measured(runs, value, notes)
    ratio = f"{digits(ours.value / theirs)}×" if ours.value is not None and theirs else MISSING
    return ours, sourced(theirs, it, notes), TableCell(ratio)


def sourced(value: float | None, it: Published, notes: Footnotes) -> TableCell:
    """A published number with the digits that it was published with, marked with where that was."""
    if value is None:
        return TableCell(MISSING)
    return TableCell(f"{value:,.6g}", notes.marks([f"published: {it.source}"]))


def measured(runs: Runs, value: Value, notes: Footnotes) -> TableCell:
    """The median with the lowest and highest of the repeats that it rests on, and its marks."""
    behind = resting_on(runs, value)
    found = spread_of(behind, value)
    if found is None:
        return TableCell(MISSING, notes.marks([absence(runs)]))
    return TableCell(str(found), notes.marks(taints(behind)), found.median)


def serial_ratios(study: Study, figures: Figures) -> Table:
    """One row for each pair of protocols and batch with one user: images/s and gRPC over HTTP, both sides."""
    notes = Footnotes()
    rows = [row for link in figures for row in _rows(study, link, figures[link], notes)]
    endpoints = [run.endpoint for run in study.runs if run.link in figures]
    return Table(
        "gRPC over HTTP beside the published",
        "Images per second with one user, medians; in brackets what the repeats allow.",
        HEADS,
        tuple(rows),
        notes.texts,
        numeric=frozenset(range(1, len(HEADS))),
        shared=(repeats(study), *disclosures(study, endpoints)),
    )


def _rows(
    study: Study, link: str, figures: Sequence[Published], notes: Footnotes
) -> Iterator[tuple[TableCell, ...]]:
    """Those over one link: each pair of protocols in the same variant, batch by batch."""
    serial = [run for run in study.runs if run.serial and run.link == link and not run.is_floor]
    for name, pair in protocol_pairs(study, serial).items():
        for batch in sorted({run.batch for run in serial if run.way in pair}):
            http, grpc = ([run for run in serial if run.way == way and run.batch == batch] for way in pair)
            theirs = [it for runs in (http, grpc) if runs and (it := beside(runs[0], figures))]
            if len(theirs) == len(pair):
                their = their_endpoint(http[0], figures).rpartition("-")[0]
                head = TableCell(f"{name} beside their {their}"), TableCell(str(batch))
                yield (*head, *_ours(http, grpc, notes), *_theirs(theirs[0], theirs[1], notes))


def _ours(http: Runs, grpc: Runs, notes: Footnotes) -> tuple[TableCell, ...]:
    sides = [number(runs, images_per_s, notes) for runs in (http, grpc)]
    top, bottom = (spread_of(resting_on(runs, images_per_s), images_per_s) for runs in (grpc, http))
    ratio = over(top, bottom) if top and bottom else None
    return (*sides, TableCell(ratio.times if ratio else MISSING))


def _theirs(http: Published, grpc: Published, notes: Footnotes) -> tuple[TableCell, ...]:
    """Their figures and ratio: of the latency where images per second were not published."""
    cells = [sourced(it.images_per_s, it, notes) for it in (http, grpc)]
    if http.images_per_s and grpc.images_per_s:
        return (*cells, TableCell(f"{digits(grpc.images_per_s / http.images_per_s)}×"))
    if http.latency_p50_ms and grpc.latency_p50_ms:
        marks = notes.marks([BY_LATENCY, f"published: {http.source}"])
        return (*cells, TableCell(f"{digits(http.latency_p50_ms / grpc.latency_p50_ms)}×", marks))
    return (*cells, TableCell(MISSING))
