"""HTTP/1.1 by geventhttpclient: a connection per caller; timed, for studies of plain clients."""

import functools
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

import gevent
import gevent.socket
from geventhttpclient import HTTPClient
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool

from users.codecs.base import PreparedRequest
from users.tls import context_of
from users.transport.headers import headers_of
from users.transport.http_response import Connection, HttpResponse, Stamps
from users.transport.size_limits import bound_library


class StampedSocket:
    """A connected socket whose sends and receives leave their times in `stamps`."""

    def __init__(self, stamps: Stamps, socket: Any) -> None:
        self._stamps, self._socket = stamps, socket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def sendall(self, data: Any) -> None:
        """Send all, stamped before the first byte and after the last."""
        stamps = self._stamps
        stamps.send_began = stamps.send_began or time.perf_counter_ns()
        try:
            self._socket.sendall(data)
        finally:
            # A server may answer and hang up before it has all: that answer counts, too.
            stamps.send_ended = time.perf_counter_ns()

    def recv(self, size: int) -> bytes:
        """Receive, stamped when there was something."""
        data: bytes = self._socket.recv(size)
        if data:
            stamps, now_ns = self._stamps, time.perf_counter_ns()
            stamps.first_byte = stamps.first_byte or now_ns
            stamps.last_byte = now_ns
        return data


class Hooked:
    """Before a pool's class: what is done with a socket before it connects, and what is used from then on.

    `took` is told the nanoseconds that a connection took, its host's name looked up and its handshakes done,
    and how many of them the look-up took.
    """

    _resolve_ns = 0

    before: Callable[[Any], None]
    after: Callable[[Any], Any]
    took: Callable[[int, int], None]

    def _resolve(self) -> Any:
        began_ns = time.perf_counter_ns()
        found = super()._resolve()  # type: ignore[misc]
        is_address = found[0][-1][0] == self._connection_host  # type: ignore[attr-defined]
        self._resolve_ns = 0 if is_address else time.perf_counter_ns() - began_ns
        return found

    def _create_tcp_socket(self, *kind: int) -> gevent.socket.socket:
        made = super()._create_tcp_socket(*kind)  # type: ignore[misc]
        self.before(made)
        return made

    def _create_socket(self) -> Any:
        began_ns = time.perf_counter_ns()
        made = super()._create_socket()  # type: ignore[misc]
        self.took(time.perf_counter_ns() - began_ns, self._resolve_ns)
        return self.after(made)


class PlainPool(Hooked, ConnectionPool):
    """geventhttpclient's pool."""


class TlsPool(Hooked, SSLConnectionPool):
    """The same over TLS. Of several addresses it tells the first one's fault, and one of TLS says more."""

    _fault: ssl.SSLError | None = None

    def _create_socket(self) -> Any:
        self._fault = None
        try:
            return super()._create_socket()
        except OSError as error:
            raise self._fault or error from None

    def _connect_socket(self, sock: gevent.socket.socket, address: Any) -> gevent.socket.socket:
        try:
            return super()._connect_socket(sock, address)
        except ssl.SSLError as error:
            self._fault = error
            raise


def one_connection(
    server: tuple[str, int],
    context: ssl.SSLContext | None,
    headers: Mapping[str, str],
    timeouts_s: tuple[float, float],
    tls_name: str = "",
    before: Callable[[Any], None] = lambda socket: None,
    after: Callable[[Any], Any] = lambda socket: socket,
    took: Callable[[int, int], None] = lambda took_ns, resolve_ns: None,
) -> HTTPClient:
    """geventhttpclient's client of one kept-alive connection to a host and port, over TLS as `context` says.

    `timeouts_s`: to connect, and of each read. `tls_name`: the name that TLS asks for, where that is not the
    host. `before` is given a socket that is to be connected, `after`
    one that is, over TLS with its handshake done; what it gives is used in its place. `took` is told how many
    nanoseconds that took, and of them the look-up of the host's name.
    """
    bound_library()
    connect_s, read_s = timeouts_s
    times: dict[str, Any] = {"connection_timeout": connect_s, "network_timeout": read_s}
    host, port = server
    client = HTTPClient(host, port=port, headers=headers, concurrency=1, **times)
    pool: PlainPool | TlsPool
    if context is not None:
        verified, factory = context.check_hostname, lambda **_: context
        pool = TlsPool(
            *(*server, tls_name or host, port),
            size=1,
            insecure=not verified,
            ssl_context_factory=factory,
            **times,
        )
    else:
        pool = PlainPool(*server, *server, size=1, **times)
    pool.before, pool.after, pool.took = before, after, took
    # The library has no hook for the sockets of its pool; the pool itself has connected nothing yet.
    client._connection_pool = pool
    return client


class LibraryConnection(Connection):
    """geventhttpclient's. Its own timeouts are for each read: what trickles in would outlive them."""

    _client: HTTPClient | None = None

    def _exchange(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        if self._client is None:
            self._client = self._new_client()
        # An answer that is there at once is not waited for: others would have no turn.
        gevent.sleep(0)
        response = self._client.post(path, body=prepared.body, headers=dict(prepared.headers))
        response.largest_bytes = prepared.largest_reply  # type: ignore[attr-defined]
        data = bytes(response.read())
        named = {name.lower(): value for name, value in response.items()}
        # Whether the connection lasts, the library finds out by itself.
        return HttpResponse(response.status_code, named, data, True, self._stamps.phases_ns())

    def _new_client(self) -> HTTPClient:
        to, both = self._endpoint, (self._timeout_s, self._timeout_s)
        context = context_of(to.security) if to.tls else None
        stamped = functools.partial(StampedSocket, self._stamps)
        named = {**({"Host": to.authority} if to.authority else {}), **headers_of(to)}
        return one_connection(
            (to.host, to.port), context, named, both, to.tls_name, after=stamped, took=self._stamps.connected
        )

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
