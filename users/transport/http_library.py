"""HTTP/1.1 by geventhttpclient, as tritonclient has it: for studies of that client, its requests stamped."""

import ssl
import time
from typing import Any

import gevent
import gevent.socket
from geventhttpclient import HTTPClient
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool

from users.endpoint import Endpoint
from users.tls import authorization, context_of
from users.transport.base import PreparedRequest
from users.transport.http_response import Connection, HttpResponse, Stamps
from users.transport.size_limits import bound_library


class StampedSocket:
    """A connected socket whose sends and receives leave their times in `stamps`."""

    def __init__(self, socket: Any, stamps: Stamps) -> None:
        self._socket, self._stamps = socket, stamps

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
        stamps, now_ns = self._stamps, time.perf_counter_ns()
        stamps.first_byte = stamps.first_byte or now_ns
        stamps.last_byte = now_ns
        return data


class TlsPool(SSLConnectionPool):
    """geventhttpclient's pool of one connection over TLS as a context says."""

    def __init__(
        self, context: ssl.SSLContext, host: str, port: int, connect_s: float, timeout_s: float
    ) -> None:
        super().__init__(
            host, port, host, port, size=1, connection_timeout=connect_s, network_timeout=timeout_s,
            insecure=not context.check_hostname, ssl_context_factory=lambda **_: context,
        )  # fmt: skip
        self._fault: ssl.SSLError | None = None

    def _create_socket(self) -> gevent.socket.socket:
        """Of several addresses the library tells the first one's fault, and one of TLS says more."""
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


class Stamping:
    """Before a pool's class: its sockets stamp, once they are connected and have shaken hands."""

    stamps: Stamps

    def _create_socket(self) -> Any:
        return StampedSocket(super()._create_socket(), self.stamps)  # type: ignore[misc]


class StampedPool(Stamping, ConnectionPool):
    """geventhttpclient's pool of one connection."""


class StampedTlsPool(Stamping, TlsPool):
    """The same over TLS."""


def stamped_client(stamps: Stamps, endpoint: Endpoint, timeout_s: float) -> HTTPClient:
    """geventhttpclient's client with one kept-alive connection whose requests are stamped."""
    host, port, security = endpoint.host, endpoint.port, endpoint.security
    bound_library()
    times: dict[str, Any] = {"connection_timeout": timeout_s, "network_timeout": timeout_s}
    made = HTTPClient(host, port=port, headers=authorization(security), concurrency=1, **times)
    pool: StampedPool | StampedTlsPool
    if endpoint.tls:
        pool = StampedTlsPool(context_of(security), host, port, timeout_s, timeout_s)
    else:
        pool = StampedPool(host, port, host, port, size=1, **times)
    pool.stamps = stamps
    # The library has no hook for the sockets of its pool; the pool itself has connected nothing yet.
    made._connection_pool = pool
    return made


class LibraryConnection(Connection):
    """geventhttpclient's. Its own timeouts are for each read: what trickles in would outlive them."""

    _client: HTTPClient | None = None

    def _exchange(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        if self._client is None:
            self._client = stamped_client(self._stamps, self._endpoint, self._timeout_s)
        # An answer that is there at once is not waited for: others would have no turn.
        gevent.sleep(0)
        response = self._client.post(path, body=prepared.body, headers=dict(prepared.headers))
        response.largest_bytes = prepared.largest_reply  # type: ignore[attr-defined]
        data = bytes(response.read())
        named = {name.lower(): value for name, value in response.items()}
        # Whether the connection lasts, the library finds out by itself.
        return HttpResponse(response.status_code, named, data, True, self._stamps.phases_ns())

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
