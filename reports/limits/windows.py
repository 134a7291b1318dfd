"""What holds a run's connections up: how full their windows are, how far the round trip is from its least."""

from reports.fold.path import Path
from reports.fold.records import ratio
from reports.format import digits
from reports.limits.shares import connections, in_flight
from reports.summary.summary import Summary

BUSY_SHARE = 0.5
"""Of the connections' time: those that idle more are waiting for something else."""
LIMITED_SHARE = 0.5
"""Of their busy time, as the kernel states it."""
FULL_WINDOW = 0.5
"""Of what the windows allow: they shrink at a loss, and a mean over them is above what was used."""
LEAST_WINDOWS = 2.0
"""That the requests on a connection fill: one that fits in a window waits only for the round trip."""
LONG_NS = 1_000_000
"""Round trip at best: over a shorter path the smallest usual window, ten segments, is 14 MB a second."""
BESIDE_NS = 100_000
"""Round trip at best between processes of one host: a window is full there while a thread is scheduled."""
HEAVY_LOSS = 5e-3
"""Of the segments: a connection then stalls at most requests, however long the path is."""
NEAR_TIMES, NEAR_NS = 1.3, 1_000_000
"""Round trip over its least where no queue stands on the way; the second is what scheduling adds."""
FASTER = 1.2
"""One connection's latest rate over the mean rate of all: the link then carries more than it is given."""


def held_by_buffers(path: Path) -> str:
    """Which buffer at one of the ends holds the connections up, in words; empty where none does."""
    if not long(path):
        return ""
    receiver, sender = path.rwnd_share or 0.0, path.sndbuf_share or 0.0
    if max(receiver, sender) < LIMITED_SHARE:
        return ""
    name, share = ("receiver's window", receiver) if receiver >= sender else ("send buffer", sender)
    return f"the {name} for {digits(100 * share)} % of that"


def held_by_congestion(run: Summary, path: Path, shared: bool) -> str:
    """The congestion window where it holds the connections up, in words; empty where it does not.

    `shared`: whether several requests share each, so that full windows tell on a short path, too.
    """
    heavy = (loss_share(path) or 0.0) >= HEAVY_LOSS
    if not heavy and not (long(path, BESIDE_NS if shared else LONG_NS) and fills_windows(run, path)):
        return ""
    size = "" if path.cwnd_bytes is None else f" of {digits(path.cwnd_bytes / 1e3)} kB"
    return f"the congestion window{size}"


def fills_windows(run: Summary, path: Path) -> bool:
    """Whether requests take several windows each, which are used while there is something to send."""
    use, windows = window_use(run, path), windows_needed(run, path)
    return use is not None and use >= FULL_WINDOW and windows is not None and windows >= LEAST_WINDOWS


def window_use(run: Summary, path: Path) -> float | None:
    """Bytes under way by the windows' sum while connections are busy: about 1 where windows are the limit."""
    seen, rate, rtt = connections(run), path.wire_bytes_per_s, path.rtt_ns
    if not seen or rate is None or rtt is None or not path.cwnd_bytes:
        return None
    busy = 1.0 if path.busy_share is None else path.busy_share
    return ratio(rate * rtt / 1e9, seen * path.cwnd_bytes * busy)


def windows_needed(run: Summary, path: Path) -> float | None:
    """How many windows the requests fill that are under way on one connection."""
    seen, under_way = connections(run), in_flight(run)
    if run.request_bytes is None or not path.cwnd_bytes:
        return None
    sharing = max(1.0, under_way / seen) if seen and under_way is not None else 1.0
    return run.request_bytes * sharing / path.cwnd_bytes


def loss_share(path: Path) -> float | None:
    """Segments sent again, of all that were sent."""
    return ratio(path.retransmits, path.segments_out)


def long(path: Path, least_ns: int = LONG_NS) -> bool:
    """Whether the path is so long that a window can be what limits it."""
    least = path.rtt_ns if path.min_rtt_ns is None else path.min_rtt_ns
    return least is not None and least >= least_ns


def shows_room(path: Path) -> bool:
    """Whether some connection alone was faster, while it sent, than all are on average.

    Then a queue on the way is each request's own: its bytes come faster than the link takes them, and it is
    empty again before the next.
    """
    rate, fastest = path.wire_bytes_per_s, path.delivery_bytes_per_s
    return rate is not None and fastest is not None and fastest >= FASTER * rate


def near_least(path: Path) -> bool:
    """Whether no queue stands on the way; not where the round trip is unknown."""
    rtt, least = path.rtt_ns, path.min_rtt_ns
    return rtt is not None and least is not None and rtt <= max(NEAR_TIMES * least, least + NEAR_NS)
