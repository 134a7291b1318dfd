"""The table of connections: what the kernel knew of the path between the workers and the server."""

from reports.fold.path import Path
from reports.fold.ratio import ratio
from reports.format import counted, known, ms
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_head

HEADS = (
    *("run", "asked", "seen", "round trip ms", "least ms", "window KB", "sent again %", "busy %"),
    *("receiver %", "send buffer %", "window %", "wire KB an image", "Mbit/s up", "link's images/s"),
)


def connections_and_path(study: Study) -> Table:
    """One row for each run whose connections were looked at."""
    notes = Notes()
    rows = tuple((run_head(study, run, notes), *_numbers(run, run.path)) for run in study.started if run.path)
    rate = "the emulated link" if study.links else "the rate given by --link-mbit"
    return Table(
        "Connections and path",
        "From the kernel's TCP_INFO, all workers together. Of the connections' time, busy is when bytes were "
        "under way; of that, held up by the receiver's window, by the send buffer, and by neither: the "
        "congestion window and the wire. Wire bytes are both ways, headers included; the link's images/s are "
        f"what {rate} allows.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(HEADS))),
        folded=True,
    )


def link_images_per_s(run: Summary) -> float | None:
    """What a link of the given rate allows in its busier direction; None where one of the two is unknown."""
    if run.path is None or not run.images or not run.link_bytes_per_s:
        return None
    ways = (run.path.sent_wire_bytes, run.path.received_wire_bytes)
    busier = max((way for way in ways if way is not None), default=0)
    return run.link_bytes_per_s * run.images / busier if busier else None


def _numbers(run: Summary, path: Path) -> list[Cell]:
    again = ratio(path.bytes_retransmitted, path.bytes_sent)
    shares = (again, path.busy_share, path.rwnd_share, path.sndbuf_share, path.cwnd_share)
    texts = (
        *(counted(count) for count in (path.asked, path.connections)),
        *(ms(path.rtt_ns), ms(path.min_rtt_ns)),
        known(path.cwnd_bytes, 1e3),
        *(known(share, 0.01) for share in shares),
        known(path.wire_bytes_per_image, 1e3),
        known(path.wire_bytes_per_s, 1e6 / 8),
        known(link_images_per_s(run)),
    )
    return [Cell(text) for text in texts]
