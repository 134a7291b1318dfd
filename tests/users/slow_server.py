"""A server in the client's own event loop: slow where a test wants it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gevent
from gevent import socket
from gevent.pool import Group

from users.transport.http_response import Stamps

PAUSE_S = 0.1
LARGE = bytes(16_000_000)
"""More than both sides' socket buffers hold."""


class Server:
    """`handle` answers the requests of each connection and notes its pauses; `open` are now connected."""

    def __init__(self, handle: Callable[[Server, Any], None], stamps: Stamps) -> None:
        self.stamps = stamps
        self.pauses_ns: list[int] = []
        self.connections = self.open = 0
        self.bodies: list[bytes] = []
        self._handle = handle
        self._listener = socket.socket()
        # A small window: what the server does not read, the client cannot hand over.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port: int = self._listener.getsockname()[1]
        self._greenlet, self._talks = gevent.spawn(self._accept), Group()

    def _accept(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            self.connections += 1
            self.open += 1
            self._talks.spawn(self._talk, peer)

    def _talk(self, peer: Any) -> None:
        try:
            with peer, suppress(ConnectionError):
                self._handle(self, peer)
        finally:
            self.open -= 1

    def pause(self) -> None:
        began_ns = time.perf_counter_ns()
        gevent.sleep(PAUSE_S)
        self.pauses_ns.append(time.perf_counter_ns() - began_ns)

    def read(self, peer: Any, begun: bytes = b"") -> bool:
        """A whole request; False where the client has gone."""
        data = bytearray(begun)
        while b"\r\n\r\n" not in data:
            more = peer.recv(65536)
            if not more:
                return False
            data += more
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        (length,) = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ]
        body = bytearray(body)
        while len(body) < length:
            more = peer.recv(1_000_000)
            if not more:
                return False
            body += more
        self.bodies.append(bytes(body))
        return True

    def close(self) -> None:
        self._greenlet.kill()
        self._talks.kill()
        self._listener.close()


def answer_of(body: bytes, **headers: str) -> bytes:
    """An answer with status 200."""
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{''.join(lines)}\r\n".encode() + body


def reads_slowly(server: Server, peer: Any) -> None:
    """Its pause comes when the request has begun to come."""
    begun = peer.recv(1)
    server.pause()
    server.read(peer, begun)
    peer.sendall(answer_of(b"ok"))


def waits(server: Server, peer: Any) -> None:
    """Its pause comes when it has the whole request."""
    while server.read(peer):
        server.pause()
        peer.sendall(answer_of(b"ok"))


def answers_in_two_pieces(server: Server, peer: Any) -> None:
    """Its pause comes when the client has the first piece."""
    server.read(peer)
    first, second = answer_of(b"ok")[:-1], b"k"
    peer.sendall(first)
    while not server.stamps.first_byte:
        gevent.sleep(0.001)
    server.pause()
    peer.sendall(second)


def answers_early_and_hangs_up(server: Server, peer: Any) -> None:
    """It has seen but the beginning of the request."""
    peer.recv(1)
    peer.sendall(answer_of(b"ok"))


@contextmanager
def serving(handle: Callable[[Server, Any], None], stamps: Stamps | None = None) -> Iterator[Server]:
    server = Server(handle, stamps or Stamps())
    try:
        yield server
    finally:
        server.close()
