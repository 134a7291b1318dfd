"""The table of the wire: bytes for each image, and how near the fastest cell came to the link's rate."""

from reports.format import digits, known
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.topics.load.wire import OVERHEAD, Wire, wires
from reports.topics.payloads.matrix import images_per_s

HEADS = ("endpoint", "batch", "KB sent an image", "KB received", "fastest cell", "images/s")
LINK_HEADS = ("link Mbit/s", "its images/s", "reached %")
ABOVE = "above 100 %: the link is faster than it was said to be, or does not count headers"


def wire_ceilings(study: Study) -> Table:
    """One row for each way and batch with a success; the link's columns only where some rate is known."""
    notes = Notes()
    found = wires(study)
    linked = any(wire.ceiling for wire in found)
    rows = tuple((*_row(study, wire, notes), *(_link(wire, notes) if linked else ())) for wire in found)
    said = disclosures(study, (wire.way.endpoint for wire in found))
    told = (
        "The link's images/s are what its rate could carry in the busier direction: full TCP segments over "
        f"IPv4 and Ethernet ({digits(100 * OVERHEAD - 100)} % headers), and nothing lost or else under way."
        if linked
        else "No link's rate is known; --link-mbit gives it."
    )
    heads = (*HEADS, *(LINK_HEADS if linked else ()))
    return Table(
        "Bytes on the wire",
        f"Bodies of requests and answers, by image; 1 KB is 1,000 bytes. {told}",
        heads,
        rows,
        notes.texts,
        numeric=frozenset({1, 2, 3, *range(5, len(heads))}),
        shared=tuple(text for text in said if text not in notes.texts),
    )


def _row(study: Study, wire: Wire, notes: Notes) -> tuple[Cell, ...]:
    said = stand_in(study, wire.way.endpoint)
    sizes = (wire.sent_bytes / 1e3, wire.received_bytes / 1e3)
    return (
        Cell(study.named(wire.way), notes.marks([said] if said else [])),
        Cell(str(wire.batch)),
        *(Cell(digits(size), (), size) for size in sizes),
        Cell(wire.fastest[0].cell),
        number(wire.fastest, images_per_s, notes),
    )


def _link(wire: Wire, notes: Notes) -> tuple[Cell, ...]:
    rate = None if wire.link_bytes_per_s is None else wire.link_bytes_per_s * 8 / 1e6
    share = None if wire.share is None else 100 * wire.share
    marks = notes.marks([ABOVE] if share is not None and share > 100 else [])
    told = ((rate, ()), (wire.ceiling, ()), (share, marks))
    return tuple(Cell(known(value), those, value) for value, those in told)
