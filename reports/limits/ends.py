"""The ends of the path as the limit: connecting, the server's intake of requests, the way of its answers."""

from reports.caveats.attribution import PER_REQUEST
from reports.fold.records import ratio
from reports.format import digits, ms
from reports.limit import Limit
from reports.limits.http2 import withheld_said
from reports.limits.path import BUSY_SHARE, LIMITED_SHARE, long, reads_slowly
from reports.limits.shares import (
    DELAYED_ACK_NS,
    MOST,
    at_least,
    held_ns,
    kilobytes,
    path_ns,
    saturated,
    server_share,
    service_ns,
    total,
)
from reports.summary.summary import Summary, parts_of

LARGE_BYTES = 65_536
"""Of an answer: a smaller one fits in a connection's first windows, and takes a round trip at most."""
OVERLAP = 0.2
"""Of the service time, by which the parts come to more than it."""
ACK_TIMES = (0.95, 1.25)
"""Of the time for which Linux may hold an acknowledgement back; timers and scheduling lengthen it."""
CONNECT_SHARE, LARGEST_SHARE = 0.3, 0.2
"""Of the service time: so much at least, or so much where no other part takes more."""
RESOLVING_ADVICE = (
    "Let this host cache names (systemd-resolved, nscd), or give the server's address in place of its name. "
    "Kept connections need no look-up."
)
CONNECTS = 0.5
"""Of the requests, that waited for a new connection: with fewer, most go over one that was kept."""


def handshake(run: Summary) -> Limit | None:
    """Making connections takes much of requests' time, for each of them or for a few that wait for long: most
    of it the look-up of the host's name, or not.

    A server without room would answer no more requests over kept connections.
    """
    each, took_ns, whole_ns = run.counts.connects_per_request, run.phases.connect_ns, service_ns(run)
    if each is None or saturated(run):
        return None
    share = ratio(took_ns, whole_ns)
    often = each >= CONNECTS and at_least(share, LARGEST_SHARE) and _is_largest(run)
    if not at_least(share, CONNECT_SHARE) and not often:
        return None
    made = f"{digits(100 * each)} % of requests waited for a new connection"
    resolve_ns = run.phases.resolve_ns
    if at_least(ratio(resolve_ns, took_ns), MOST):
        took = f"looking the host's name up took {ms(resolve_ns)} of {ms(whole_ns)} ms"
        return Limit("name-resolution", f"{made}; {took}", RESOLVING_ADVICE)
    apart = "DNS included" if resolve_ns is None else f"{ms(resolve_ns)} of them DNS"
    took = f"connecting took {ms(took_ns)} of {ms(whole_ns)} ms ({apart})"
    return Limit("handshake", f"{made}; {took}", _connecting_advice(run))


def _is_largest(run: Summary) -> bool:
    """Whether no other part of the service time is longer, what is unexplained included."""
    others = (part.ns for part in parts_of(run) if part.name not in ("resolve", "connect", "send_delay"))
    return (run.phases.connect_ns or 0.0) > max((ns for ns in others if ns is not None), default=0.0)


def _connecting_advice(run: Summary) -> str:
    if (run.counts.connects_per_request or 0.0) < CONNECTS:
        return "Find what makes connecting slow: the host's name server, or a listener whose queue is full."
    if run.channels == PER_REQUEST:
        return "Use --channels per-user: the client itself was asked for a new connection for each request."
    if run.think:
        return (
            "Let the server, and a proxy before it, keep idle connections for longer than users think"
            f" ({run.think_s:g} s)."
        )
    return (
        "Turn keep-alive on (HTTP/1.1 without `Connection: close`; nginx: keepalive_requests): the server, or"
        " a proxy before it, closes connections."
    )


def server_intake(run: Summary) -> Limit | None:
    """The server's side keeps a window closed, HTTP/2's or TCP's, although it has room for more work."""
    if saturated(run) or not (said := withheld_said(run) or _unread_said(run)):
        return None
    advice = (
        "Find what reads the requests slowly: a proxy or sidecar whose own link is full, or the server's "
        "front end. More connections or a faster client would not help."
    )
    return Limit("server-intake", said, advice)


def _unread_said(run: Summary) -> str:
    """How TCP's window is closed by a receiver that does not read; empty where it is not, or costs little."""
    path = run.path
    if path is None or not at_least(path.busy_share, BUSY_SHARE):
        return ""
    if not at_least(path.rwnd_share, LIMITED_SHARE) or not reads_slowly(run, path):
        return ""
    if not at_least(ratio(total(path_ns(run), run.unexplained_ns), held_ns(run)), MOST):
        return ""
    said = [
        f"the receiver's window was full for {digits(100 * (path.rwnd_share or 0.0))} % of the time in which "
        "connections had something to send"
    ]
    if path.not_sent_bytes:
        said.append(f"{kilobytes(path.not_sent_bytes)} waited to be sent on each")
    return "; ".join(said)


def downlink(run: Summary) -> Limit | None:
    """Large answers take most of the time to arrive, over a path on which they are under way."""
    path, answer = run.path, run.counts.response_bytes
    if path is None or _written_slowly(run) or not at_least(_receiving(run), MOST):
        return None
    if answer is None or answer < LARGE_BYTES or not long(path):
        return None
    rate = ratio(answer, run.phases.receive_ns)
    said = (
        f"an answer of {kilobytes(answer)} took {ms(run.phases.receive_ns)} of {ms(service_ns(run))} ms "
        f"to arrive, at {digits((rate or 0.0) * 8e3)} Mbit/s"
    )
    advice = (
        "Ask for fewer bytes back (a smaller type, no tensors that nobody needs), or use a faster way back."
    )
    return Limit("downlink", said, advice)


def nagle(run: Summary) -> Limit | None:
    """The rest of a small answer comes as late as a held-back acknowledgement of its first part."""
    path, took, answer = run.path, run.phases.receive_ns, run.counts.response_bytes
    if took is None or answer is None or answer >= LARGE_BYTES or not at_least(_receiving(run), MOST):
        return None
    if (
        path is None
        or path.min_rtt_ns is None
        or path.min_rtt_ns > DELAYED_ACK_NS / 2
        or _written_slowly(run)
    ):
        return None
    least, most = (times * DELAYED_ACK_NS for times in ACK_TIMES)
    if not least <= took <= most + path.min_rtt_ns:
        return None
    said = (
        f"the rest of an answer of {kilobytes(answer)} came {ms(took)} ms after its first byte, over round "
        f"trips of {ms(path.min_rtt_ns)} ms: as long as an acknowledgement is held back"
    )
    advice = "Set TCP_NODELAY in the server or its proxy, or have it write head and body at once."
    return Limit("nagle", said, advice)


def _written_slowly(run: Summary) -> bool:
    """Whether the server may send its answer while it works on it: it has no room, or the two overlap."""
    overlap = (server_share(run) or 0.0) + (_receiving(run) or 0.0) > 1
    return overlap or saturated(run) or at_least(ratio(-(run.unexplained_ns or 0.0), held_ns(run)), OVERLAP)


def _receiving(run: Summary) -> float | None:
    return ratio(run.phases.receive_ns, held_ns(run))
