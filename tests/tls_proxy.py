"""TLS before any plain server, in the test's own event loop."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gevent
import gevent.socket
from gevent.server import StreamServer

PIECE_BYTES = 1 << 16


class Proxy:
    """Takes TLS off and hands the bytes on to `upstream`; `connections` counts those with a handshake."""

    def __init__(self, upstream: str, context: ssl.SSLContext) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream, self.connections, self._context = (host, int(port)), 0, context
        self._server = StreamServer(("127.0.0.1", 0), self._talk)
        self._server.start()
        self.port: int = self._server.server_port

    @property
    def address(self) -> str:
        """Where it listens, by the name in its certificate."""
        return f"localhost:{self.port}"

    def _talk(self, raw: Any, _: Any) -> None:
        with self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False) as peer:
            try:
                peer.do_handshake()
            except OSError:
                return
            self.connections += 1
            with gevent.socket.create_connection(self._upstream) as behind:
                ways = [gevent.spawn(pour, *pair) for pair in ((peer, behind), (behind, peer))]
                gevent.joinall(ways, count=1)
                gevent.killall(ways)

    def stop(self) -> None:
        """Listen no more."""
        self._server.stop()


def pour(source: Any, sink: Any) -> None:
    """Until one of them ends."""
    with suppress(OSError):
        while data := source.recv(PIECE_BYTES):
            sink.sendall(data)


@contextmanager
def behind_tls(upstream: str, context: ssl.SSLContext) -> Iterator[Proxy]:
    """A proxy before a plain server's address."""
    made = Proxy(upstream, context)
    try:
        yield made
    finally:
        made.stop()
