"""The network's part of the mean latency: what is proven of it, what it may be at most, and what is left."""

from operator import attrgetter
from typing import NamedTuple

from reports.fold.records import ratio
from reports.summary.summary import LEFT_OVER, PARTS, Summary, mean_in_flight

ALWAYS_BUSY, FULL_WINDOW = 0.85, 0.5
"""Of a connection's time; and of what its windows allow: these shrink at a loss, and their mean is then above
what was used."""


class Remainder(NamedTuple):
    """What the measured parts leave of the mean latency, in ns; None where it is not known.

    `proven_ns` was the network's, `most_ns` may have been. `unexplained_ns` is what is not proven, of which
    the difference of the two may be the network's; it is below 0 where parts overlap.
    """

    proven_ns: float | None = None
    most_ns: float | None = None
    unexplained_ns: float | None = None


def remainder(run: Summary) -> Remainder:
    """It from all the other parts; without the path's state nothing is the network's."""
    if run.latency.mean_ns is None:
        return Remainder()
    stated = (attrgetter(path)(run) for name, path in PARTS.items() if name not in LEFT_OVER)
    left_ns = run.latency.mean_ns - sum(ns for ns in stated if ns is not None)
    kernel_ns = in_kernel_ns(run)
    if kernel_ns is None:
        return Remainder(unexplained_ns=left_ns)
    room_ns = max(0.0, left_ns)
    after_ns = kernel_ns - _before_sent_ns(run, _filling_ns(run))
    most_ns = min(room_ns, max(least_round_trip_ns(run), after_ns))
    proven_ns = min(most_ns, proven_network_ns(run))
    return Remainder(proven_ns, most_ns, left_ns - proven_ns)


def in_kernel_ns(run: Summary) -> float | None:
    """For how long at most, per success, bytes of it lay in the kernel or on the wire; None where untold.

    A connection is busy from the first byte handed to it to the acknowledgement of the last. Where several
    requests share one, an instant counts for those that may have had unacknowledged bytes then.
    """
    busy_ns = _busy_ns(run)
    return None if busy_ns is None else busy_ns * unacknowledged(run)


def _busy_ns(run: Summary) -> float | None:
    """How long a connection was busy for each success."""
    return ratio(run.path.busy_ns if run.path else None, run.succeeded)


def _before_sent_ns(run: Summary, held_ns: float) -> float:
    """How much of a busy connection's time, per success, went by before a last byte was handed over.

    That is `send`, and `held_ns` of the wait for HTTP/2's windows, while what filled one is on the network.
    Of calls that share a connection, some are in these phases while another is sent: together they may take
    longer than the connection was busy, but their turns do not.
    """
    return min((run.phases.send_ns or 0.0) + held_ns, _busy_ns(run) or 0.0)


def _filling_ns(run: Summary) -> float:
    """How long, per success, a closed HTTP/2 window had its bytes on the network: a round trip at the least.

    The last of them was handed over when the window closed. What a stall takes beyond its round trip may be
    the server's, which then has all that was sent.
    """
    http2 = run.path.http2 if run.path else None
    if http2 is None or not run.succeeded:
        return 0.0
    stalls = (http2.stream_stalls or 0) + (http2.connection_stalls or 0)
    stalled_ns = (http2.stream_stalled_ns or 0) + (http2.connection_stalled_ns or 0)
    return min(stalls * least_round_trip_ns(run), stalled_ns) / run.succeeded


def proven_network_ns(run: Summary) -> float:
    """The least time that a request was on the network after it was sent, by three bounds.

    The answer to its last byte took a round trip; its bytes took their time at the rate at which connections
    delivered; and while a connection carried what its windows allow, each of its requests waited for it. Both
    also went on while the request was being sent, which is in `send` and `flow_wait`.
    """
    if run.path is None:
        return 0.0
    before_ns = _before_sent_ns(run, run.phases.flow_wait_ns or 0.0)
    carrying_ns = (in_kernel_ns(run) or 0.0) * (windows_filled(run) or 0.0)
    sending_ns = min(_delivery_ns(run) or 0.0, in_kernel_ns(run) or 0.0)
    return max(least_round_trip_ns(run), sending_ns - before_ns, carrying_ns - before_ns)


def least_round_trip_ns(run: Summary) -> float:
    """The least that the kernel saw; 0 where it did not tell."""
    return (run.path.min_rtt_ns if run.path else None) or 0.0


def windows_filled(run: Summary) -> float | None:
    """The share of busy time in which bytes were surely under way, 0 to 1; None where it is not known.

    Bytes under way over what windows allow. By looks at unacknowledged bytes where there are any; else by
    Little's law, from the rate and the least round trip: delayed acknowledgements lengthen the mean one.
    Time in which the receiver's window or the send buffer held back what there was to send counts whole.
    """
    path = run.path
    if path is None or not path.busy_share:
        return None
    window = min(filter(None, (path.cwnd_bytes, path.window_bytes)), default=None)
    under_way = path.unacked_bytes if path.unacked_bytes is not None else _by_little(run)
    filled = ratio(under_way, None if window is None else window * path.busy_share)
    held = (path.rwnd_share or 0.0) + (path.sndbuf_share or 0.0)
    return None if filled is None and not held else min(1.0, max(filled or 0.0, held))


def always_full(run: Summary) -> bool:
    """Whether connections always carry what their windows allow, with more bytes waiting than these hold."""
    path = run.path
    waiting = ratio(path.not_sent_bytes, path.cwnd_bytes) if path else None
    if path is None or waiting is None or waiting < 1 or (path.busy_share or 0.0) < ALWAYS_BUSY:
        return False
    return (windows_filled(run) or 0.0) >= FULL_WINDOW


def _by_little(run: Summary) -> float | None:
    """Bytes under way on a connection, on average, at least."""
    path = run.path
    if path is None or path.wire_bytes_per_s is None or not path.connections or path.min_rtt_ns is None:
        return None
    return path.wire_bytes_per_s * path.min_rtt_ns / 1e9 / path.connections


def _delivery_ns(run: Summary) -> float | None:
    """How long a request's bytes take on its connection."""
    seconds = ratio(run.counts.request_bytes, run.path.delivery_bytes_per_s if run.path else None)
    return None if seconds is None else 1e9 * seconds


def unacknowledged(run: Summary) -> float:
    """How many of the requests on a busy connection had unacknowledged bytes, at most, and at least 1.

    All that were under way, where nobody looked at the bytes: those at the server then count, too. So they do
    on a full connection, where grpcio holds back what the kernel does not take; ours does so in `send`.
    """
    path, sharers = run.path, sharing(run)
    if path is None or path.unacked_bytes is None or path.not_sent_bytes is None or not path.busy_share:
        return sharers
    if always_full(run) and run.phases.send_ns is None:
        return sharers
    held = ratio((path.unacked_bytes + path.not_sent_bytes) / path.busy_share, run.counts.request_bytes)
    # One more is begun and one more ends within the bytes that are held.
    return sharers if held is None else min(sharers, 1.0 + held)


def sharing(run: Summary) -> float:
    """How many requests were on one connection at a time, on average, and at least 1."""
    connections = run.path.connections if run.path else None
    in_flight = mean_in_flight(run)
    return max(1.0, in_flight / connections) if connections and in_flight else 1.0
