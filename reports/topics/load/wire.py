"""The wire ceiling: how many images a second a link of known rate could carry, and how near a study came."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reports.fold.path import HEADER_BYTES
from reports.format import digits, known
from reports.page.question import Question
from reports.page.study_table import Columns, cell, measured, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.failures import unranked
from reports.stats.figures import fastest_cell, images_per_s, rate
from reports.stats.repeats import Runs, Value, by_batch, resting_on, typical
from reports.study.study import Study
from reports.summary.batch import Batch, images_per_request
from reports.summary.summary import Summary, Way

SEGMENT_BYTES = 1_448
"""Of a request in a full segment: 1,500 bytes of Ethernet, less IPv4 (20) and TCP with timestamps (32).

Sources: RFC 894 (1,500), RFC 791, RFC 9293, RFC 7323 (timestamps, 12 with padding). On the wire it is
SEGMENT_BYTES + HEADER_BYTES = 1,514.
"""
OVERHEAD = (SEGMENT_BYTES + HEADER_BYTES) / SEGMENT_BYTES
ABOVE = "above 100 %: the link is faster than declared, or its rate does not count headers"


@dataclass(frozen=True)
class WireCeiling:
    """A way and batch: bytes of bodies for each image, its fastest cell's runs, what the link could carry.

    `ceiling` is images per second and `share` what of it was reached; None where the link's rate is unknown.
    """

    way: Way
    batch: Batch
    sent_bytes: float
    received_bytes: float
    fastest: Runs
    rate: float
    link_bytes_per_s: float | None

    @property
    def ceiling(self) -> float | None:
        """By the busier direction, since each has the rate to itself."""
        busier = max(self.sent_bytes, self.received_bytes)
        return ceiling_per_s(self.link_bytes_per_s, busier) if self.link_bytes_per_s and busier else None

    @property
    def share(self) -> float | None:
        """The fastest cell's images per second over the ceiling."""
        return self.rate / self.ceiling if self.ceiling else None


def ceiling_per_s(link_bytes_per_s: float, image_bytes: float) -> float:
    """Images a second on a link that carries nothing but full segments of them."""
    return link_bytes_per_s / (image_bytes * OVERHEAD)


def wires(study: Study) -> tuple[WireCeiling, ...]:
    """Each way and batch, floors left out, with a cell to rank whose bytes are known, by way and batch."""
    runs = [run for run in study.started if not run.is_floor]
    return tuple(wire for key, of in by_batch(study, runs).items() for wire in _wire(*key, of))


def _wire(way: Way, batch: Batch, runs: Runs) -> Iterator[WireCeiling]:
    fastest = fastest_cell(runs)
    behind = resting_on(fastest, images_per_s)
    sent, received = (typical(behind, _image_bytes(body)) for body in ("request", "response"))
    if sent is not None and fastest:
        link = behind[0].link_bytes_per_s
        yield WireCeiling(way, batch, sent, received or 0.0, fastest, rate(fastest), link)


def _image_bytes(body: str) -> Value:
    """Of the bodies of requests or of responses."""

    def of_each(run: Summary) -> float | None:
        whole: float | None = getattr(run.counts, f"{body}_bytes")
        return None if whole is None else whole / images_per_request(run)

    return of_each


def _link(wire: WireCeiling, notes: Footnotes) -> Iterator[TableCell]:
    rate = None if wire.link_bytes_per_s is None else wire.link_bytes_per_s * 8 / 1e6
    share = None if wire.share is None else 100 * wire.share
    marks = notes.marks([ABOVE] if share is not None and share > 100 else [])
    return (
        TableCell(known(value), those, value)
        for value, those in ((rate, ()), (wire.ceiling, ()), (share, marks))
    )


def _size(head: str, value: Callable[[WireCeiling], float]) -> Columns[WireCeiling]:
    """A number of bytes in KB."""
    return cell(head, lambda wire, _: TableCell(digits(value(wire) / 1e3), (), value(wire) / 1e3))


COLUMNS: Sequence[Columns[WireCeiling]] = (
    cell("endpoint", lambda wire, notes: notes.way(wire.fastest[0]), numeric=False),
    text("batch", lambda wire: str(wire.batch)),
    _size("KB sent an image", lambda wire: wire.sent_bytes),
    _size("KB received", lambda wire: wire.received_bytes),
    text("fastest cell", lambda wire: wire.fastest[0].cell, numeric=False),
    cell("images/s", lambda wire, notes: measured(wire.fastest, images_per_s, notes)),
)
OF_LINK = Columns(("link Mbit/s", "its images/s", "reached %"), _link)


def wire_ceilings(study: Study) -> Table:
    """One row for each way and batch with a cell to rank; the link's columns where some rate is known."""
    found = wires(study)
    linked = any(wire.ceiling for wire in found)
    told = (
        "The link's images/s are what its rate could carry in the busier direction: full TCP segments over "
        f"IPv4 and Ethernet ({digits(100 * OVERHEAD - 100)} % headers), with no loss and no other traffic."
        if linked
        else "No link's rate is known; --link-mbit gives it."
    )
    left_out = unranked(run for run in study.started if not run.is_floor)
    caption = f"Bodies of requests and answers, by image; 1 KB is 1,000 bytes. {told} {left_out}".rstrip()
    columns = (*COLUMNS, OF_LINK) if linked else COLUMNS
    return study_table(study, "Bytes on the wire", caption, columns, found)


def asks_of_the_wire(study: Study) -> bool:
    """Whether a link's rate is known, or payloads or compressions are compared: else nobody asks."""
    runs = [run for run in study.runs if not run.is_floor]
    sent = {(run.payload, run.compression) for run in runs if run.shares or run.compression}
    return any(run.link_bytes_per_s for run in runs) or len(sent) > 1


WIRE = Question("wire", "Load and cost", (wire_ceilings,), place=1, applies=asks_of_the_wire)
