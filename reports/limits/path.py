"""The path as the limit: the link carries what it can, or few connections carry less than it could.

Connections are held up by their windows where those are full and the round trip is near its least. What is
only left over of the latency is no evidence for either.
"""

from reports.fold.path import Path
from reports.fold.records import ratio
from reports.format import digits, ms
from reports.limit import UNKNOWN, Limit
from reports.limits.http2 import stream_wait_said, waits_for_windows
from reports.limits.shares import (
    MOST,
    at_least,
    has_caveat,
    held_ns,
    in_flight,
    kilobytes,
    path_ns,
    path_share,
    saturated,
    server_share,
)
from reports.summary.link import carried_per_s, link_rate
from reports.summary.network import ALWAYS_BUSY, FULL_WINDOW, always_full
from reports.summary.summary import Summary

FULL_SHARE = 0.85
"""Of the rate that was told: dips after a loss and pauses between requests take the rest."""
QUEUE_TIMES, QUEUE_NS = 2.0, 5_000_000
"""Round trip over its least where a queue builds up on the path: a buffer holds about a round trip's worth of
bytes or more. The second bound keeps out loopbacks and local networks, where scheduling alone doubles it."""
QUEUE_WINDOW_USE = 0.2
"""Of the windows: without much under way, a long round trip is a held-back acknowledgement."""
LOSS_SHARE, LEAST_RETRANSMITS = 1e-4, 3
"""Of the segments: at one in ten thousand a connection over 20 ms carries a quarter of a clean one."""
FEWER = 0.75
"""Connections to requests under way: below it, requests share connections at most times."""
BUSY_SHARE = 0.5
"""Of the connections' time: those that idle more are waiting for something else."""
PACED_SHARE = 0.75
"""Of the pace at which BBR sends: it varies by a quarter to probe (draft-ietf-ccwg-bbr, 5.3.3)."""
LIMITED_SHARE = 0.5
"""Of their busy time, as the kernel states it."""
LEAST_WINDOWS = 2.0
"""That the requests on a connection fill: one that fits in a window waits only for the round trip."""
LONG_NS = 1_000_000
"""Round trip at best: over a shorter path the smallest usual window, ten segments, is 14 MB a second."""
BESIDE_NS = 100_000
"""Round trip at best between processes of one host: a window is full there while a thread is scheduled."""
HEAVY_LOSS = 5e-3
"""Of the segments: a connection then stalls at most requests, however long the path is."""
NEAR_TIMES, NEAR_NS, SCHEDULING_NS = 1.3, 1_000_000, 100_000
"""Round trip over its least where no queue stands on the way; the others are what scheduling adds at the
ends, over paths of a millisecond and more, and over shorter ones, where a full link's queue is as short."""
FASTER = 1.2
"""One connection's latest rate over the mean rate of all: the link then carries more than it is given."""
START_SHARE = 0.3
"""Of the service time, and more than the server's part of it."""
START_ADVICE = (
    "Keep connections busy, or send fewer bytes (JPEG, not float32). On the client's host, sysctl"
    " net.ipv4.tcp_slow_start_after_idle=0 keeps the window of idle connections, and ip route's initcwnd"
    " sets that of new ones."
)
LESS = "Send fewer bytes (JPEG, not float32), or use a faster link: more connections would not help."


def link(run: Summary) -> Limit | None:
    """The link carries nearly its rate, or a queue stands before it, or BBR sends at the rate it measured."""
    return _at_its_rate(run) or _full_queue(run) or _at_its_pace(run)


def slow_start(run: Summary) -> Limit | None:
    """Requests begin with a window far smaller than they are, which doubles in each round trip."""
    path, whole_ns = run.path, held_ns(run)
    if path is None or path.min_rtt_ns is None or not long(path) or saturated(run):
        return None
    more = ratio(path.start_round_trips, run.succeeded) or 0.0
    share = ratio(more * path.min_rtt_ns, whole_ns)
    if not at_least(share, START_SHARE) or at_least(server_share(run), share or 0.0):
        return None
    said = (
        f"requests of {kilobytes(run.counts.request_bytes or 0.0)} began with a congestion window of "
        f"{kilobytes(path.start_window_bytes or 0.0)}: slow start takes {digits(more)} more round trips, "
        f"{ms(more * path.min_rtt_ns)} of {ms(whole_ns)} ms"
    )
    return Limit("slow-start", said, START_ADVICE)


def few_connections(run: Summary) -> Limit | None:
    """Requests share connections, or lose segments, while each is held by a window and the link has room."""
    path = run.path
    if path is None or saturated(run) or waits_for_windows(run):
        return None
    if held := _held(run, path):
        return Limit("connections", _evidence(run, path, held), _advice(run))
    return Limit("connections", _turns_said(run), _advice(run)) if _takes_turns(run) else None


def _held(run: Summary, path: Path) -> str:
    """What holds connections up on a path with room, in words; empty where nothing is seen to."""
    if not _on_the_path(run, path) or _is_paced(path):
        return ""
    if link_rate(run) is None and not near_least(path) and not shows_room(path):
        return ""  # a full link holds connections up in the same way
    held = held_by_buffers(run, path)
    if not held and path.retransmits == 0 and link_rate(run) is None:
        return ""  # windows that do not grow without a loss are kept small by a link that signals congestion
    if not held and (shares_connections(run) or _lossy_alone(run, path)):
        # As many connections as requests on a clean path: they start slowly, and more users would get more.
        return held_by_congestion(run, path, shares_connections(run))
    return held


def lossy_or_policed(run: Summary) -> Limit | None:
    """Several connections with windows of their own lose segments: a lossy path and a policer look alike."""
    path = run.path
    if path is None or link_rate(run) is not None or saturated(run) or not _on_the_path(run, path):
        return None
    if not _lossy(path) or not held_by_congestion(run, path, False) or not near_least(path):
        return None
    lost = f"{path.retransmits or 0:,} segments ({digits(100 * (loss_share(path) or 0.0))} %)"
    why = f"{lost} were retransmitted on several connections: a lossy path and a policed rate look alike"
    return Limit(UNKNOWN, why, "Give the link's rate with --link-mbit, then run again.")


def _at_its_rate(run: Summary) -> Limit | None:
    rate, carried, way = link_rate(run), *carried_per_s(run)
    if not rate or carried is None or carried < FULL_SHARE * rate or at_least(server_share(run), MOST):
        return None
    of_all = "links'" if (run.hosts or 1) > 1 else "link's"
    said = f"{_mbit(carried)} of the {of_all} {_mbit(rate)} Mbit/s were {way}"
    return Limit("link", f"{said} ({digits(100 * carried / rate)} %)", LESS)


def _at_its_pace(run: Summary) -> Limit | None:
    """BBR keeps no queue before a link that it fills: it sends at the rate that it saw arrive."""
    path = run.path
    if path is None or saturated(run) or not _is_paced(path) or not long(path):
        return None
    if not at_least(path.busy_share, ALWAYS_BUSY) or shows_room(path):
        return None
    pace, rate = _mbit(path.pacing_bytes_per_s or 0.0), _mbit(path.delivery_bytes_per_s or 0.0)
    count = path.connections or 0
    each = "its one connection" if count == 1 else f"each of {count:,} connections"
    said = (
        f"BBR paced {each} at {pace} Mbit/s, and {rate} were delivered, "
        f"busy {digits(100 * (path.busy_share or 0.0))} % of the time"
    )
    return Limit("link", said, LESS)


def _is_paced(path: Path) -> bool:
    """Whether BBR sets the pace, and connections deliver at it: what the path lets through limits them."""
    if not at_least(path.bbr_share, LIMITED_SHARE) or not path.not_sent_bytes:
        return False
    if (path.rwnd_share or 0.0) + (path.sndbuf_share or 0.0) >= LIMITED_SHARE:
        return False  # the pace is what was delivered before, whatever kept that low
    return at_least(ratio(path.delivery_bytes_per_s, path.pacing_bytes_per_s), PACED_SHARE)


def _full_queue(run: Summary) -> Limit | None:
    path = run.path
    if path is None or has_caveat(run, "path-gap"):
        return None
    if saturated(run) or not _on_the_path(run, path) or shows_room(path):
        return None
    rtt, least, use = path.rtt_ns, path.min_rtt_ns, window_use(run, path)
    if rtt is None or least is None or rtt < max(QUEUE_TIMES * least, least + QUEUE_NS):
        return None
    if use is not None and use < QUEUE_WINDOW_USE:
        return None
    rate = "" if path.wire_bytes_per_s is None else f" at {_mbit(path.wire_bytes_per_s)} Mbit/s sent"
    said = f"{round_trips_said(path)}: a queue builds up on the path{rate}"
    more = "" if link_rate(run) else " With --link-mbit the rate itself can be judged."
    return Limit("link", f"{said}; {_path_said(run)}", LESS + more)


def _on_the_path(run: Summary, path: Path) -> bool:
    """Whether most of the time is proven to be spent there, or connections are full, and are seldom idle."""
    if path.busy_share is not None and path.busy_share < BUSY_SHARE:
        return False
    return at_least(path_share(run), MOST) or always_full(run)


def _takes_turns(run: Summary) -> bool:
    """Whether requests wait for their turn on a connection that takes one at a time, as HTTP/1.1's do."""
    if run.protocol != "http" or always_full(run):
        return False  # a connection that always carries what it can leaves nothing to others on a full link
    return shares_connections(run) and at_least(_send_share(run), MOST)


def _send_share(run: Summary) -> float | None:
    return ratio(run.phases.send_ns, held_ns(run))


def _sent_late_said(run: Summary) -> str:
    what = "call" if run.protocol == "grpc" else "request"
    return f"{ms(run.phases.send_ns)} of {ms(held_ns(run))} ms passed before a {what} was sent"


def _turns_said(run: Summary) -> str:
    seen = run.tcp_connections or 0
    count = "1 connection" if seen == 1 else f"{seen:,} connections"
    return (
        f"{digits(in_flight(run) or 0.0)} requests under way on {count}, which take one at a time; "
        f"{_sent_late_said(run)}"
    )


def shares_connections(run: Summary) -> bool:
    """Whether more requests are under way than there are connections."""
    seen, under_way = run.tcp_connections, in_flight(run)
    return bool(seen) and under_way is not None and (seen or 0) < FEWER * under_way


def _lossy_alone(run: Summary, path: Path) -> bool:
    """Whether it is one connection that loses segments: of several, a policer may be what drops them."""
    return _lossy(path) and (link_rate(run) is not None or (run.tcp_connections or 0) <= 1)


def _lossy(path: Path) -> bool:
    return at_least(path.retransmits, LEAST_RETRANSMITS) and at_least(loss_share(path), LOSS_SHARE)


def _evidence(run: Summary, path: Path, held: str) -> str:
    seen, under_way = run.tcp_connections, in_flight(run)
    count = "its connections" if seen is None else "1 connection" if seen == 1 else f"{seen:,} connections"
    requests = "requests" if under_way is None else f"{digits(under_way)} requests"
    busy = "" if path.busy_share is None else f", busy {digits(100 * path.busy_share)} % of the time"
    said = [f"{requests} under way on {count}{busy} and held by {held}"]
    if path.rtt_ns is not None and path.min_rtt_ns is not None:
        said.append(round_trips_said(path))
    lost = loss_share(path)
    if lost and path.retransmits:
        said.append(f"{path.retransmits:,} segments ({digits(100 * lost)} %) were retransmitted")
    if run.protocol == "grpc" and shares_connections(run) and at_least(_send_share(run), MOST):
        said.append(f"calls stand behind one another: {_sent_late_said(run)}")
    if at_least(path_share(run), MOST):
        return "; ".join([*said, _path_said(run)])
    return "; ".join([*said, f"{kilobytes(path.not_sent_bytes or 0.0)} waited to be sent on each"])


def round_trips_said(path: Path) -> str:
    """How long they took, where both are known."""
    return f"round trips took {ms(path.rtt_ns)} ms and at best {ms(path.min_rtt_ns)} ms"


def _path_said(run: Summary) -> str:
    return f"the path took {ms(path_ns(run))} of {ms(held_ns(run))} ms a request{stream_wait_said(run)}"


def _advice(run: Summary) -> str:
    if run.protocol == "grpc" and run.channels != "per-user" and shares_connections(run):
        return "Give each user its own channel: --channels per-user."
    if run.channels not in ("", "per-user") and shares_connections(run):
        return "Give each user its own connection: --channels per-user."
    return "Use more users or workers, and so more connections: each carries only what its window allows."


def _mbit(bytes_per_s: float) -> str:
    return digits(bytes_per_s * 8 / 1e6)


def held_by_buffers(run: Summary, path: Path) -> str:
    """Which buffer at one of the ends holds the connections up, in words; empty where none does."""
    if not long(path) or reads_slowly(run, path):
        return ""
    receiver, sender = path.rwnd_share or 0.0, path.sndbuf_share or 0.0
    if max(receiver, sender) < LIMITED_SHARE:
        return ""
    name, share = ("receiver's window", receiver) if receiver >= sender else ("send buffer", sender)
    return f"the {name} for {digits(100 * share)} % of that"


def reads_slowly(run: Summary, path: Path) -> bool:
    """Whether the receiver's window holds connections up that carry less than it allows in a round trip.

    Then it is closed most of the time: the receiver does not take what has come. Over a path of unknown
    windows that is not known, and on a short one no window explains it.
    """
    if not at_least(path.rwnd_share, LIMITED_SHARE):
        return False
    if not long(path):
        return True
    rate, rtt, seen = path.wire_bytes_per_s, path.min_rtt_ns, path.connections
    if rate is None or rtt is None or not seen or not path.window_bytes:
        return False
    return rate * rtt / 1e9 / seen < FULL_WINDOW * path.window_bytes * (path.busy_share or 1.0)


def held_by_congestion(run: Summary, path: Path, shared: bool) -> str:
    """The congestion window where it holds the connections up, in words; empty where it does not.

    `shared`: whether several requests share each, so that full windows tell on a short path, too.
    """
    heavy = (loss_share(path) or 0.0) >= HEAVY_LOSS
    if not heavy and not (long(path, BESIDE_NS if shared else LONG_NS) and fills_windows(run, path)):
        return ""
    size = "" if path.cwnd_bytes is None else f" of {kilobytes(path.cwnd_bytes)}"
    return f"the congestion window{size}"


def fills_windows(run: Summary, path: Path) -> bool:
    """Whether requests take several windows each, which are used while there is something to send."""
    use, windows = window_use(run, path), windows_needed(run, path)
    return use is not None and use >= FULL_WINDOW and windows is not None and windows >= LEAST_WINDOWS


def window_use(run: Summary, path: Path) -> float | None:
    """Bytes under way by the windows' sum while connections are busy: about 1 where windows are the limit."""
    seen, rate, rtt = run.tcp_connections, path.wire_bytes_per_s, path.rtt_ns
    if not seen or rate is None or rtt is None or not path.cwnd_bytes:
        return None
    busy = 1.0 if path.busy_share is None else path.busy_share
    return ratio(rate * rtt / 1e9, seen * path.cwnd_bytes * busy)


def windows_needed(run: Summary, path: Path) -> float | None:
    """How many windows the requests fill that are under way on one connection."""
    seen, under_way = run.tcp_connections, in_flight(run)
    if run.counts.request_bytes is None or not path.cwnd_bytes:
        return None
    sharing = max(1.0, under_way / seen) if seen and under_way is not None else 1.0
    return run.counts.request_bytes * sharing / path.cwnd_bytes


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
    if rtt is None or least is None:
        return False
    return rtt <= max(NEAR_TIMES * least, least + (NEAR_NS if least >= NEAR_NS else SCHEDULING_NS))
