"""What our own wire told of its HTTP/2 connections: streams, frames, closed windows and pings."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reports.fold.records import LastWords, ratio
from reports.ledger.ledger import Record

FIELD = "http2"
"""Where a path record has it."""
GROWTHS = (
    *("frames_sent", "frames_received", "stream_waits", "goaways", "retried"),
    *("stream_stalls", "stream_stalled_ns", "connection_stalls", "connection_stalled_ns"),
    *("connection_waited_ns", "pings", "ping_ns"),
)
"""Each record has what they grew by since the last."""
MOST = frozenset({"streams"})
LEAST = frozenset({"streams_allowed", "stream_window_bytes", "ping_min_ns"})


@dataclass(frozen=True, kw_only=True)
class Http2:
    """One run's HTTP/2 connections in the measure phase, all workers together; None where untold.

    `connections` are the most open at once, `streams` the most at once on one of them. `streams_allowed` and
    `stream_window_bytes` are the fewest concurrent streams and the smallest initial window of a stream that a
    server has set. `stream_waits` are calls that waited for a free stream.

    A stall is a time in which a window was closed to bytes that were ready to be sent: `stream_stalled_ns` is
    the sum over streams, `connection_stalled_ns` over connections, `connection_waited_ns` over the calls that
    a connection's window held. `ping_ns` is the mean round trip of `pings`, `ping_min_ns` the shortest.
    `retried` calls were sent once more, since the server had not processed them.
    """

    connections: int | None = None
    streams: int | None = None
    streams_allowed: int | None = None
    stream_window_bytes: int | None = None
    frames_sent: int | None = None
    frames_received: int | None = None
    stream_waits: int | None = None
    stream_stalls: int | None = None
    stream_stalled_ns: int | None = None
    connection_stalls: int | None = None
    connection_stalled_ns: int | None = None
    connection_waited_ns: int | None = None
    pings: int | None = None
    ping_ns: float | None = None
    ping_min_ns: float | None = None
    goaways: int | None = None
    retried: int | None = None


class Http2Records:
    """What path records tell of HTTP/2, added up as they come."""

    def __init__(self) -> None:
        self._told = False
        self._totals = defaultdict[str, int](int)
        """Of what grew, where some record states it."""
        self._edges = dict[str, int]()
        """The most and the least seen, by the name."""
        self._connections = LastWords("connections")

    def add(self, record: Record) -> None:
        """Takes in one second of a worker; what has no HTTP/2 connection tells nothing."""
        told: Mapping[str, Any] | None = record.get(FIELD)
        if not told:
            return
        self._told = True
        known = {name: value for name, value in told.items() if value is not None}
        for name in known.keys() & set(GROWTHS):
            self._totals[name] += known[name]
        for names, choose in ((MOST, max), (LEAST, min)):
            for name in known.keys() & names:
                self._edges[name] = choose(known[name], self._edges.get(name, known[name]))
        self._connections.add({**told, "second": record["second"], "worker": record["worker"]})

    def close(self, seconds: Iterable[int]) -> None:
        """Of these seconds nothing more comes."""
        self._connections.close(seconds)

    def http2(self) -> Http2 | None:
        """They all as one; None where none told of it."""
        if not self._told:
            return None
        totals = {name: self._totals[name] for name in GROWTHS if name in self._totals}
        ping_ns = ratio(totals.pop("ping_ns", None), totals.get("pings"))
        return Http2(**totals, **self._edges, ping_ns=ping_ns, connections=self._connections.most)
