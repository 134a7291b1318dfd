"""HTTP/2's own bounds as the limit: the receiver's closed windows, and how many streams it allows at once.

Both are known of calls over our own connections; grpcio tells neither.
"""

from math import ceil
from typing import NamedTuple

from reports.fold.http2 import Http2
from reports.fold.path import Path
from reports.fold.records import ratio
from reports.format import digits, ms, plural
from reports.limit import UNKNOWN, Limit
from reports.limits.shares import (
    MOST,
    at_least,
    held_ns,
    in_flight,
    kilobytes,
    path_share,
    saturated,
    server_share,
    service_ns,
)
from reports.summary.summary import Summary, parts_of

STREAM_SHARE = 0.2
"""Of the service time: without that wait the same users would make a quarter more calls."""
WINDOW_SHARE = 0.3
"""Of the time of calls that have a stream, where no other part takes more; MOST of it in any case."""
UNSENT_SHARE = 0.25
"""Of the bytes in the kernel: where more of them wait there, TCP is slower than HTTP/2's windows allow."""
WITHHELD_TIMES, WITHHELD_NS, SHORT_NS = 2.0, 1_000_000, 100_000
"""For how many round trips a window stays closed, at most, where the receiver gives credit at once; and what
scheduling at both ends may add, over paths of a millisecond and more, and over shorter ones."""
FEWER_BYTES = "or send fewer bytes (JPEG, not float32)."
WINDOW_ADVICE = (
    "Raise the server's stream window (nginx http2_body_preread_size, Envoy initial_stream_window_size, "
    "HAProxy tune.h2.initial-window-size, grpc-go InitialWindowSize, tonic initial_stream_window_size; "
    f"grpc-js keeps 64 KB), and its connection window where that is no larger, {FEWER_BYTES}"
)
CONNECTION_KNOBS = (
    "the server's connection window (Envoy initial_connection_window_size, grpc-go InitialConnWindowSize, "
    f"tonic initial_connection_window_size), {FEWER_BYTES}"
)
STREAMS_ADVICE = (
    "Raise the server's limit of concurrent streams (nginx http2_max_concurrent_streams, HAProxy "
    "tune.h2.max-concurrent-streams, Envoy max_concurrent_streams, gRPC grpc.max_concurrent_streams), or use "
    "more connections (--channels per-user or pool:N)"
)


class Closed(NamedTuple):
    """The windows that held calls up for longer, streams' or connections': how often, how long on average."""

    of_connection: bool
    stalls: int
    mean_ns: float


def http2_window(run: Summary) -> Limit | None:
    """Calls wait for credit that comes within about a round trip: the windows are small for such a path."""
    closed = closed_windows(run)
    if closed is None or saturated(run) or not waits_for_windows(run) or withheld(run) is not False:
        return None
    advice = _connection_advice(run) if closed.of_connection else WINDOW_ADVICE
    return Limit("http2-window", "; ".join(_window_said(run, closed)), advice)


def _connection_advice(run: Summary) -> str:
    """More connections are no help where each has one call at a time."""
    http2 = _http2(run)
    if http2 and (http2.streams or 0) > 1:
        return f"Use more connections (--channels per-user or pool:N), raise {CONNECTION_KNOBS}"
    return f"Raise {CONNECTION_KNOBS}"


def streams(run: Summary) -> Limit | None:
    """Calls wait for a free stream, and nothing that those with a stream use is full."""
    if not waits_for_streams(run):
        return None
    said = [_streams_said(run)]
    if run.server.busy is not None:
        said.append(f"the server's instances were executing {digits(100 * run.server.busy)} % of the time")
    if why := _room_untold(run):
        advice = f"{STREAMS_ADVICE}, and see whether the rate grows."
        return Limit(
            UNKNOWN, "; ".join([*said, f"{why}, so that it is not known whether more would help"]), advice
        )
    return Limit("streams", "; ".join(said), f"{STREAMS_ADVICE}.")


def streams_for_batches(run: Summary, not_full: Limit) -> Limit:
    """The same where instances are busy with batches that are not full: more streams would fill them."""
    return Limit("streams", f"{_streams_said(run)}; {not_full.evidence}", f"{STREAMS_ADVICE}.")


def waits_for_streams(run: Summary) -> bool:
    """Whether calls wait because as many streams are open as the server allows."""
    http2 = _http2(run)
    if http2 is None or not http2.streams_allowed or (http2.streams or 0) < http2.streams_allowed:
        return False
    return at_least(ratio(run.phases.stream_wait_ns, service_ns(run)), STREAM_SHARE)


def waits_for_windows(run: Summary) -> bool:
    """Whether closed windows are most of the time, or its largest part, and the kernel has all sent."""
    share = ratio(run.phases.flow_wait_ns, held_ns(run))
    if closed_windows(run) is None or not at_least(share, WINDOW_SHARE) or _left_unsent(run.path):
        return False
    return at_least(share, MOST) or _is_largest(run)


def closed_windows(run: Summary) -> Closed | None:
    """Which windows were closed, and for how long; None where none was, or where it was not recorded."""
    http2 = _http2(run)
    if http2 is None:
        return None
    of_connection = (http2.connection_waited_ns or 0) > (http2.stream_stalled_ns or 0)
    stalls, stalled_ns = http2.stream_stalls, http2.stream_stalled_ns
    if of_connection:
        stalls, stalled_ns = http2.connection_stalls, http2.connection_stalled_ns
    return Closed(of_connection, stalls, stalled_ns / stalls) if stalls and stalled_ns else None


def of_connection(run: Summary) -> bool:
    """Whether it is connections' windows that hold calls up, of which more connections have more."""
    closed = closed_windows(run)
    return closed is not None and closed.of_connection


def withheld(run: Summary) -> bool | None:
    """Whether windows stay closed for longer than credit takes on its way; None where that is not known."""
    closed, rtt_ns = closed_windows(run), _round_trip_ns(run)
    if closed is None or rtt_ns is None:
        return None
    allowance_ns = WITHHELD_NS if rtt_ns >= WITHHELD_NS else SHORT_NS
    if closed.mean_ns > max(WITHHELD_TIMES * rtt_ns, rtt_ns + allowance_ns):
        return True
    # Credit in small pieces makes stalls short, and many: all of a call's beside the trips of its windows.
    trips = _window_trips(run, closed)
    waited_ns = ratio(closed.stalls * closed.mean_ns, run.succeeded)
    return bool(trips) and at_least(waited_ns, trips * max(WITHHELD_TIMES * rtt_ns, rtt_ns + allowance_ns))


def _window_trips(run: Summary, closed: Closed) -> float:
    """Round trips for which a call's stream waits where credit comes at once; 0 where that is not known."""
    http2, size = _http2(run), run.counts.request_bytes
    window = (http2 and http2.stream_window_bytes) or 0
    return 0.0 if closed.of_connection or not size or not window else max(1.0, ceil(size / window) - 1.0)


def withheld_said(run: Summary) -> str:
    """That the server gives credit late, in words; empty where it does not, or where that costs little."""
    closed = closed_windows(run)
    if closed is None or not withheld(run) or not waits_for_windows(run):
        return ""
    return "; ".join(
        [*_window_said(run, closed), "credit came late, as it does where requests are read slowly"]
    )


def stream_wait_said(run: Summary) -> str:
    """The wait for a stream, which comes before the time that shares are of; empty where it is short."""
    waited_ms = ms(run.phases.stream_wait_ns)
    return f", after {waited_ms} ms for a free stream" if waits_for_streams(run) else ""


def _http2(run: Summary) -> Http2 | None:
    return (run.path.http2 or None) if run.path else None


def _left_unsent(path: Path | None) -> bool:
    """Whether bytes wait in the kernel: then they, and no window of HTTP/2, hold up what comes after them."""
    if path is None or path.not_sent_bytes is None:
        return False
    whole = path.not_sent_bytes + (path.unacked_bytes or 0.0)
    return at_least(ratio(path.not_sent_bytes, whole), UNSENT_SHARE)


def _is_largest(run: Summary) -> bool:
    others = [
        part.ns for part in parts_of(run) if part.name not in ("flow_wait", "stream_wait", "send_delay")
    ]
    return (run.phases.flow_wait_ns or 0.0) > max((ns for ns in others if ns is not None), default=0.0)


def _round_trip_ns(run: Summary) -> float | None:
    """TCP's mean; where the kernel did not tell, the least of HTTP/2's pings: a busy server answers late."""
    http2 = _http2(run)
    if run.path and run.path.rtt_ns is not None:
        return run.path.rtt_ns
    return http2.ping_min_ns if http2 else None


def _window_said(run: Summary, closed: Closed) -> list[str]:
    http2, rtt_ns = _http2(run), _round_trip_ns(run)
    size = f" of {kilobytes(http2.stream_window_bytes)}" if http2 and http2.stream_window_bytes else ""
    whose = "the connection's HTTP/2 window" if closed.of_connection else f"a stream's HTTP/2 window{size}"
    each = ratio(closed.stalls, run.succeeded)
    often = "" if each is None else f" {digits(each)} times a call,"
    trips = [] if rtt_ns is None else [f"round trips of {ms(rtt_ns)} ms"]
    trips += [f"pings of {ms(http2.ping_ns)} ms"] if http2 and http2.ping_ns is not None else []
    waited = f"calls waited {ms(run.phases.flow_wait_ns)} of {ms(held_ns(run))} ms for credit"
    said = [
        f"{waited}{stream_wait_said(run)}",
        f"{whose} was closed{often} for {ms(closed.mean_ns)} ms on average, over {' and '.join(trips)}",
    ]
    if run.path and run.path.not_sent_bytes is not None:
        left = kilobytes(run.path.not_sent_bytes) if run.path.not_sent_bytes else "nothing"
        said.append(f"the kernel had {left} left to send")
    return said


def _streams_said(run: Summary) -> str:
    http2, seen = _http2(run), run.tcp_connections
    allowed = f"the server allows {plural((http2 and http2.streams_allowed) or 0, 'stream')} at once"
    where = "" if seen is None else " on 1 connection" if seen == 1 else f" on each of {seen:,} connections"
    calls = f"{digits(in_flight(run) or 0.0)} calls were under way"
    waited = f"they waited {ms(run.phases.stream_wait_ns)} of {ms(service_ns(run))} ms for a free one"
    return f"{allowed}{where}, and {calls}; {waited}"


def _room_untold(run: Summary) -> str:
    """Why it is not known that calls with a stream have room for more, in words; empty where it is."""
    if at_least(ratio(run.unexplained_ns, held_ns(run)), MOST):
        return f"{ms(run.unexplained_ns)} of the {ms(held_ns(run))} ms with a stream are unexplained"
    if run.server.busy is not None and not run.server.several:
        return ""
    if at_least(path_share(run), MOST) and not at_least(server_share(run), MOST):
        return ""
    return "how busy the server was is not known"
