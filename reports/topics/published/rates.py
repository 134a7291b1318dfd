"""A study's figures over a link beside those that were published of one like it."""

from collections.abc import Iterator, Sequence

from reports.cells_csv.rows import Row
from reports.format import MISSING, multiple
from reports.page.question import Question
from reports.page.study_table import Columns, StudyNotes, cell, measured, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.published_figures.figures import (
    P50,
    RATE,
    Figure,
    Figures,
    as_published,
    beside,
    published_figures,
    sourced,
    their_endpoint,
)
from reports.stats.figures import images_per_s, p50_ms, protocol_pairs
from reports.stats.paired import paired_ratio
from reports.stats.repeats import Runs, Value, by_cell, by_repeat
from reports.study.study import Study

CAPTION = (
    "Ours is over the emulated link; published is what others measured, with "
    "another client and server, over the path that it models. Its rate and loss were fitted to some of these "
    "figures: where ours agree they are consistent with theirs, which is no proof. b is batch, c is users."
)
BY_LATENCY = "of published p50, since images/s were not published"


def rates_beside(study: Study, figures: Figures) -> Table:
    """Images per second, one row for each cell over such a link that has a published twin."""
    return _beside(study, figures, ("images per second", "images/s"), images_per_s, RATE)


def latencies_beside(study: Study, figures: Figures) -> Table:
    """The serial p50, one row for each cell over such a link that has a published twin."""
    return _beside(study, figures, ("serial p50", "p50 ms"), p50_ms, P50)


Twins = tuple[Runs, Row]


def _beside(
    study: Study,
    figures: Figures,
    words: tuple[str, str],
    value: Value,
    published: Figure,
) -> Table:
    """The table of one figure, `words` being what it is and the head of its column."""

    def compared(twins: Twins, notes: StudyNotes) -> tuple[TableCell, ...]:
        (runs, it), theirs = twins, published(twins[1])
        ours = measured(runs, value, notes)
        ratio = f"{multiple(ours.value / theirs)}×" if ours.value is not None and theirs else MISSING
        return ours, sourced(theirs, it, notes), TableCell(ratio)

    columns: Sequence[Columns[Twins]] = (
        cell("ours", lambda twins, notes: notes.way(twins[0][0]), numeric=False),
        text("beside their", lambda twins: twins[1].endpoint, numeric=False),
        text("load", lambda twins: f"b{twins[0][0].batch}/c{twins[0][0].level:g}", numeric=False),
        Columns((words[1], "published", "ratio"), compared),
    )
    twins = [(runs, it) for runs, it in _twins(study, figures) if published(it) is not None]
    return study_table(study, f"Beside the published figures: {words[0]}", CAPTION, columns, twins)


def _twins(study: Study, figures: Figures) -> list[Twins]:
    """The repeats of each closed cell over such links that has a published twin, with it.

    By way, batch and users.
    """
    closed = [run for run in study.runs if run.link in figures and run.closed and not run.is_floor]
    cells = by_cell(run for run in closed if as_published(run)).values()
    ordered = sorted(cells, key=lambda runs: (study.ways.index(runs[0].way), runs[0].level, runs[0].batch))
    return [(runs, it) for runs in ordered if (it := beside(runs[0], figures[runs[0].link]))]


Pair = tuple[str, int, tuple[Runs, Runs], tuple[Row, Row]]
"""What ours and theirs are called, the batch, the runs over HTTP and gRPC, and their published twins."""


def serial_ratios(study: Study, figures: Figures) -> Table:
    """One row for each pair of protocols and batch with one user: images/s and gRPC over HTTP, both sides."""
    columns: Sequence[Columns[Pair]] = (
        text("ours beside theirs", lambda pair: pair[0], numeric=False),
        text("batch", lambda pair: str(pair[1])),
        Columns(("HTTP", "gRPC", "gRPC/HTTP"), lambda pair, notes: _ours(*pair[2], notes)),
        Columns(("published HTTP", "gRPC", "gRPC/HTTP"), lambda pair, notes: _theirs(*pair[3], notes)),
    )
    return study_table(
        study,
        "gRPC over HTTP beside the published",
        "Images per second with one user; the ratio's 95 % CI is of the repeats in pairs.",
        columns,
        (pair for link in figures for pair in _pairs(study, link, figures[link])),
    )


def _pairs(study: Study, link: str, figures: Sequence[Row]) -> Iterator[Pair]:
    """Those over one link: each pair of protocols in the same variant, batch by batch."""
    serial = [run for run in study.runs if run.serial and run.link == link and not run.is_floor]
    for name, pair in protocol_pairs(study, serial).items():
        for batch in sorted({run.batch for run in serial if run.way in pair}):
            http, grpc = ([run for run in serial if run.way == way and run.batch == batch] for way in pair)
            theirs = [it for runs in (http, grpc) if runs and (it := beside(runs[0], figures))]
            if len(theirs) == len(pair):
                their = their_endpoint(http[0], figures).rpartition("-")[0]
                yield f"{name} beside their {their}", batch, (http, grpc), (theirs[0], theirs[1])


def _ours(http: Runs, grpc: Runs, notes: StudyNotes) -> tuple[TableCell, ...]:
    sides = [measured(runs, images_per_s, notes) for runs in (http, grpc)]
    top, bottom = (by_repeat(runs, images_per_s) for runs in (grpc, http))
    return (*sides, TableCell(paired_ratio(top, bottom).times)) if top and bottom else tuple(sides)


def _theirs(http: Row, grpc: Row, notes: Footnotes) -> tuple[TableCell, ...]:
    """Their figures and ratio: of the latency where images per second were not published."""
    cells = [sourced(RATE(it), it, notes) for it in (http, grpc)]
    if (top := RATE(grpc)) and (bottom := RATE(http)):
        return (*cells, TableCell(f"{multiple(top / bottom)}×"))
    if (top := P50(http)) and (bottom := P50(grpc)):
        marks = notes.marks([BY_LATENCY, f"published: {http.source}"])
        return (*cells, TableCell(f"{multiple(top / bottom)}×", marks))
    return tuple(cells)


def rate_tables(study: Study) -> Iterator[Table]:
    """Images per second, serial latency and gRPC over HTTP."""
    figures = published_figures(study)
    for made in (rates_beside, latencies_beside, serial_ratios):
        yield made(study, figures)


RATES = Question("published-rates", "Results", (rate_tables,), place=1)
