"""The same wire over TLS: gevent's socket, asked without waiting; who must wait for it lets others run."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any

from users.endpoint import Endpoint, Protocol
from users.tls import context_of
from users.transport.sockets import Wire, connected

ALPN: dict[Protocol, tuple[str, ...]] = {"http": (), "grpc": ("h2",)}
"""What is said of HTTP's version in the handshake: gRPC demands it."""
RECORD_BYTES = 1 << 14
"""The most that TLS puts into one record."""


class TlsWire(Wire):
    """A connection to `host` and `port` over TLS, its handshake done. Raises OSError."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        # An end without TLS' own farewell is a broken connection, and no end of an answer.
        made: Any = context.wrap_socket(
            connected(host, port),
            server_hostname=host,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=False,
        )
        try:
            made.do_handshake()
        except BaseException:
            made.close()
            raise
        self._take(made)

    @property
    def stale(self) -> bool:
        """As a plain one's; but what comes may be TLS' own, as the tickets of a session are."""
        if not self._poll.poll(0):
            return bool(self._socket.pending())
        try:
            self._socket.recv(1)
        except ssl.SSLWantReadError:
            return False
        except OSError:
            pass
        return True

    def send_all(self, parts: Sequence[bytes | memoryview]) -> None:
        """All parts; what goes into one record is put together, and of more the last part alone is not."""
        *heads, body = parts
        if sum(map(len, parts)) <= RECORD_BYTES:
            heads, body = [*heads, body], b""
        for part in (b"".join(heads), body):
            rest = memoryview(part)
            while rest:
                # Not `send`, which gives 0 where it must wait, and does not say for what.
                rest = rest[self._done(self._socket.write, rest, self._writable) :]

    def recv(self, size: int) -> bytes:
        """As a plain one's, unless something has been deciphered already: then nothing need come."""
        if not self._socket.pending():
            self._wait(self._readable)
        return self._done(self._socket.recv, size, self._readable)  # type: ignore[no-any-return]

    def _done(self, call: Callable[[Any], Any], argument: Any, ready: Any) -> Any:
        """What a call gives; TLS may have to read in order to write, and the other way round."""
        while True:
            try:
                return call(argument)
            except ssl.SSLWantReadError:
                self._wait(self._readable)
            except ssl.SSLWantWriteError:
                self._wait(self._writable)


def connect(endpoint: Endpoint) -> Wire:
    """A new connection to an endpoint's server, over TLS where its URL says so. Raises OSError."""
    if endpoint.tls:
        return TlsWire(endpoint.host, endpoint.port, context_of(endpoint.security, *ALPN[endpoint.protocol]))
    return Wire(endpoint.host, endpoint.port)
