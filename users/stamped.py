"""A socket that stamps when bytes go and come, under geventhttpclient: the phases of an HTTP request."""

from __future__ import annotations

import time
from typing import Any

import gevent.socket
from geventhttpclient import HTTPClient
from geventhttpclient.connectionpool import ConnectionPool


class Stamps:
    """The moments of one request on the wire, in `perf_counter_ns`; 0 where it has not come so far."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Before a request."""
        self.send_began = self.send_ended = self.first_byte = self.last_byte = 0

    def phases_ns(self) -> dict[str, int]:
        """`send`: first to last byte handed to the kernel. `wait`: from there to the answer's first byte, 0
        where that came earlier. `receive`: from its first byte to its last.
        """
        return {
            "send": self.send_ended - self.send_began,
            "wait": max(0, self.first_byte - self.send_ended),
            "receive": self.last_byte - self.first_byte,
        }


class StampedSocket(gevent.socket.socket):  # type: ignore[misc]
    """gevent's socket, whose sends and receives leave their times in `stamps`."""

    stamps: Stamps

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all, stamped before the first byte and after the last."""
        stamps = self.stamps
        now_ns = time.perf_counter_ns()
        stamps.send_began = stamps.send_began or now_ns
        try:
            super().sendall(data, flags)
        finally:
            # A server may answer and hang up before it has all: that answer counts, too.
            stamps.send_ended = time.perf_counter_ns()

    def recv(self, *args: Any) -> bytes:
        """Receive, stamped when there was something."""
        data: bytes = super().recv(*args)
        stamps, now_ns = self.stamps, time.perf_counter_ns()
        stamps.first_byte = stamps.first_byte or now_ns
        stamps.last_byte = now_ns
        return data


class StampedPool(ConnectionPool):
    """geventhttpclient's pool of one connection, on a StampedSocket."""

    def __init__(self, stamps: Stamps, host: str, port: int, timeout_s: float) -> None:
        super().__init__(
            host, port, host, port, size=1, connection_timeout=timeout_s, network_timeout=timeout_s
        )
        self._stamps = stamps

    def _create_tcp_socket(self, family: int, socktype: int, protocol: int) -> gevent.socket.socket:
        made = StampedSocket(family, socktype, protocol)
        made.stamps = self._stamps
        return made


class StampedClient(HTTPClient):
    """geventhttpclient's client with one kept-alive connection whose requests are stamped."""

    def __init__(self, stamps: Stamps, host: str, port: int, timeout_s: float) -> None:
        super().__init__(
            host, port=port, concurrency=1, connection_timeout=timeout_s, network_timeout=timeout_s
        )
        # The library has no hook for the sockets of its pool; the pool itself has connected nothing yet.
        self._connection_pool = StampedPool(stamps, host, port, timeout_s)
