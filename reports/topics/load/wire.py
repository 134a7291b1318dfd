"""The wire ceiling: how many images a second a link of known rate could carry, and how near a study came."""

from collections.abc import Iterator
from dataclasses import dataclass

from reports.fold.path import HEADER_BYTES
from reports.page.grid import Runs, resting_on, typical
from reports.stats.figures import fastest_cell
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.summary.way import Way
from reports.topics.payloads.matrix import images_per_s

SEGMENT_BYTES = 1_448
"""Of a request in a full segment: 1,500 bytes of Ethernet, less IPv4 (20) and TCP with timestamps (32).

Sources: RFC 894 (1,500), RFC 791, RFC 9293, RFC 7323 (timestamps, 12 with padding). On the wire it is
SEGMENT_BYTES + HEADER_BYTES = 1,514.
"""
OVERHEAD = (SEGMENT_BYTES + HEADER_BYTES) / SEGMENT_BYTES


@dataclass(frozen=True)
class Wire:
    """A way and batch: bytes of bodies for each image, its fastest cell's runs, what the link could carry.

    `ceiling` is images per second and `share` what of it was reached; None where the link's rate is unknown.
    """

    way: Way
    batch: int
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


def wires(study: Study) -> tuple[Wire, ...]:
    """Each way and batch, floors left out, with a success whose bytes are known, by way and batch."""
    found: dict[tuple[Way, int], dict[str, list[Summary]]] = {}
    for run in study.started:
        if not run.is_floor and images_per_s(run) and run.request_bytes is not None:
            found.setdefault((run.way, run.batch), {}).setdefault(run.cell, []).append(run)
    keys = sorted(found, key=lambda key: (study.ways.index(key[0]), key[1]))
    return tuple(wire for key in keys for wire in _wire(*key, list(found[key].values())))


def _wire(way: Way, batch: int, cells: list[list[Summary]]) -> Iterator[Wire]:
    fastest = fastest_cell(cells)
    behind = resting_on(fastest, images_per_s)
    sent, received = (typical(behind, value) for value in (_sent, _received))
    if sent is not None and fastest:
        rate = typical(fastest, images_per_s) or 0.0
        yield Wire(way, batch, sent, received or 0.0, fastest, rate, behind[0].link_bytes_per_s)


def _sent(run: Summary) -> float | None:
    return None if run.request_bytes is None else run.request_bytes / run.batch


def _received(run: Summary) -> float | None:
    return None if run.response_bytes is None else run.response_bytes / run.batch
