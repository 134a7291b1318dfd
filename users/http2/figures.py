"""What all HTTP/2 connections of this process did, for the ledger's `path` records."""

from collections import Counter
from typing import Protocol

GROWING = (
    *("frames_sent", "frames_received", "stream_waits", "stream_stalls", "stream_stalled_ns"),
    *("connection_stalls", "connection_stalled_ns", "connection_waited_ns", "pings", "ping_ns"),
    *("goaways", "retried"),
)
UNLIMITED = (1 << 32) - 1
"""Streams at once, where a peer has set no limit, or this one."""


class Open(Protocol):
    """The calls of a connection."""

    most_open: int
    allowed: int

    def __len__(self) -> int:
        """How many are open."""


class Standing(Protocol):
    """A connection, as it is now."""

    @property
    def streams(self) -> Open:
        """Its calls."""

    @property
    def initial_window(self) -> int:
        """Bytes, as its peer has set it."""


class Figures:
    """Counts since the last take, and the connections that are open."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.connections: set[Standing] = set()
        self.ping_min_ns = 0

    def pinged(self, took_ns: int) -> None:
        """A PING came back after so long."""
        self.counts["pings"] += 1
        self.counts["ping_ns"] += took_ns
        self.ping_min_ns = min(self.ping_min_ns or took_ns, took_ns)

    def take(self) -> dict[str, int]:
        """All since the last take; empty where nothing was counted, and no connection is open."""
        counts, self.counts = self.counts, Counter()
        least_ns, self.ping_min_ns = self.ping_min_ns, 0
        if not self.connections and not counts:
            return {}
        made = {"connections": len(self.connections), **{name: counts[name] for name in GROWING}}
        made |= {"ping_min_ns": least_ns} if least_ns else {}
        return made | (self._standing() if self.connections else {})

    def _standing(self) -> dict[str, int]:
        """What the open connections are like; the most streams are counted afresh from here on."""
        made = {
            "streams": max(one.streams.most_open for one in self.connections),
            "stream_window_bytes": min(one.initial_window for one in self.connections),
        }
        for one in self.connections:
            one.streams.most_open = len(one.streams)
        allowed = min(one.streams.allowed for one in self.connections)
        return made | ({"streams_allowed": allowed} if allowed < UNLIMITED else {})


FIGURES = Figures()
"""Of this process."""


def take() -> dict[str, int]:
    """This process' figures since the last take."""
    return FIGURES.take()
