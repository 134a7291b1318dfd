"""The table of serial gRPC over HTTP beside that of a published study over a path like the link."""

from collections.abc import Iterator, Sequence

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures
from reports.page.grid import Runs, number, repeats, resting_on
from reports.page.table import Cell, Notes, Table
from reports.published_figures.figures import Published, beside, their_endpoint
from reports.published_figures.rates import Figures, sourced
from reports.stats.spread import over, spread_of
from reports.study.study_reports import Study
from reports.topics.payloads.matrix import images_per_s, protocol_pairs

HEADS = (
    *("ours beside theirs", "batch", "HTTP", "gRPC", "gRPC/HTTP"),
    *("published HTTP", "gRPC", "gRPC/HTTP"),
)
BY_LATENCY = "of published p50, since images/s were not published"


def serial_ratios(study: Study, figures: Figures) -> Table:
    """One row for each pair of protocols and batch with one user: images/s and gRPC over HTTP, both sides."""
    notes = Notes()
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


def _rows(study: Study, link: str, figures: Sequence[Published], notes: Notes) -> Iterator[tuple[Cell, ...]]:
    """Those over one link: each pair of protocols in the same variant, batch by batch."""
    serial = [run for run in study.runs if run.serial and run.link == link and not run.is_floor]
    for name, pair in protocol_pairs(study, serial).items():
        for batch in sorted({run.batch for run in serial if run.way in pair}):
            http, grpc = ([run for run in serial if run.way == way and run.batch == batch] for way in pair)
            theirs = [it for runs in (http, grpc) if runs and (it := beside(runs[0], figures))]
            if len(theirs) == len(pair):
                their = their_endpoint(http[0], figures).rpartition("-")[0]
                head = Cell(f"{name} beside their {their}"), Cell(str(batch))
                yield (*head, *_ours(http, grpc, notes), *_theirs(theirs[0], theirs[1], notes))


def _ours(http: Runs, grpc: Runs, notes: Notes) -> tuple[Cell, ...]:
    sides = [number(runs, images_per_s, notes) for runs in (http, grpc)]
    top, bottom = (spread_of(resting_on(runs, images_per_s), images_per_s) for runs in (grpc, http))
    ratio = over(top, bottom) if top and bottom else None
    return (*sides, Cell(ratio.times if ratio else MISSING))


def _theirs(http: Published, grpc: Published, notes: Notes) -> tuple[Cell, ...]:
    """Their figures and ratio: of the latency where images per second were not published."""
    cells = [sourced(it.images_per_s, it, notes) for it in (http, grpc)]
    if http.images_per_s and grpc.images_per_s:
        return (*cells, Cell(f"{digits(grpc.images_per_s / http.images_per_s)}×"))
    if http.latency_p50_ms and grpc.latency_p50_ms:
        marks = notes.marks([BY_LATENCY, f"published: {http.source}"])
        return (*cells, Cell(f"{digits(http.latency_p50_ms / grpc.latency_p50_ms)}×", marks))
    return (*cells, Cell(MISSING))
