"""HTTP/1.1 as the suite sends it: prepared bytes over a socket, nothing copied, each moment stamped.

And what all ways of sending over HTTP have in common: connections of a user's own, or shared ones.
"""

import ssl
import time
from typing import ClassVar

import gevent

from users.codecs.base import PreparedRequest
from users.codecs.cache_headers import told_cached
from users.codecs.packing import decoded
from users.endpoint import Endpoint
from users.errors import reading_error, status_error
from users.redact import keep_query
from users.transport.base import Reply, Transport
from users.transport.connections import PER_REQUEST, Borrowed, RefCounted
from users.transport.headers import headers_of
from users.transport.http_library import LibraryConnection
from users.transport.http_response import Connection, HttpResponse, read_answer
from users.transport.sockets import Socket, connect

ENDLESS_S = 86_400.0
"""For a pooled connection: the time that a request has left depends on how long it has waited."""


class HttpConnection(Connection):
    """The suite's own: it copies nothing."""

    _start, _path = b"", ""
    _socket: Socket | None = None

    def _exchange(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        if path != self._path:
            self._start, self._path = self._start_of(path), path
        stamps, socket = self._stamps, self._connected()
        refused: OSError | None = None
        stamps.send_began = time.perf_counter_ns()
        try:
            socket.send_all((self._start, prepared.head, prepared.body))
        except OSError as error:
            # A server may answer and hang up before it has all: that answer counts, too.
            refused = error
        stamps.send_ended = time.perf_counter_ns()
        try:
            answer = read_answer(socket, stamps, prepared.largest_reply)
        except OSError as error:
            # TLS says what was wrong only when it is listened to.
            raise (error if isinstance(error, ssl.SSLError) else refused or error) from None
        answer.lasts &= refused is None
        return answer

    def _start_of(self, path: str) -> bytes:
        """What every request to a path begins with; the token is here alone, since prepared ones are kept."""
        named = {"Host": self._endpoint.authority or self._endpoint.address, **headers_of(self._endpoint)}
        lines = [f"{name}: {value}\r\n" for name, value in named.items()]
        return f"POST {path} HTTP/1.1\r\n{''.join(lines)}".encode("latin-1")

    def _connected(self) -> Socket:
        """The connection, opened again if there is none, or the server has closed it."""
        if self._socket is not None and self._socket.stale:
            self.close()
        if self._socket is None:
            began_ns = time.perf_counter_ns()
            self._socket = connect(self._endpoint)
            self._stamps.connected(time.perf_counter_ns() - began_ns, self._socket.resolve_ns)
        return self._socket

    def close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()


class BorrowedConnections:
    """A user's place among up to `size` connections to an address, each lent to one request at a time.

    They are opened by the requests that first go over them, and stay open until their last user has gone.
    `timeout_s` is for a whole request of this user, waiting for a connection included.
    """

    shared: ClassVar[RefCounted[Borrowed[Connection]]] = RefCounted()

    def __init__(self, made_by: type[Connection], endpoint: Endpoint, timeout_s: float, size: int) -> None:
        server = endpoint.address, endpoint.authority, endpoint.headers, endpoint.tls, endpoint.security
        self._name, self._timeout_s, self._new = (made_by, *server, size), timeout_s, True
        self._borrowed = self.shared.join(
            self._name, lambda: Borrowed(size, lambda: made_by(endpoint, ENDLESS_S))
        )

    def post(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        """As a connection's; its phase `send` begins with waiting for one."""
        began_ns = time.perf_counter_ns()
        if self._new:
            self._new = False
            self._borrowed.grow()
        with gevent.Timeout(self._timeout_s), self._borrowed.lent() as connection:
            waited_ns = time.perf_counter_ns() - began_ns
            answer = connection.post(path, prepared)
        answer.phases_ns["send"] += waited_ns
        return answer

    def close(self) -> None:
        """Leave them to the others."""
        self.shared.leave(self._name)


class HttpTransport(Transport):
    """Over HTTP: a connection, and the path of a request."""

    _connection: Connection | BorrowedConnections | None = None

    def open(self) -> None:
        """A connection of its own, or a place among the shared ones; nothing is connected yet."""
        made_by = LibraryConnection if self.by_library else HttpConnection
        size = self.channels.size
        self._path, self._success = self.codec.path, self.codec.success
        keep_query(self._path)
        if size:
            self._connection = BorrowedConnections(made_by, self.endpoint, self.timeout_s, size)
        else:
            fresh = self.channels.kind == PER_REQUEST
            self._connection = made_by(self.endpoint, self.timeout_s, fresh)

    def exchange(self, prepared: PreparedRequest) -> Reply:
        """POST and parse. Raises RequestError on a status that means no answer."""
        assert self._connection is not None, "call open() before send()"
        answer = self._connection.post(self._path, prepared)
        received_ns, size = time.perf_counter_ns(), len(answer.body)
        if encodings := answer.headers.get("content-encoding"):
            try:
                answer.body = decoded(answer.body, encodings, prepared.largest_reply)
            except ValueError:
                if answer.status in self._success:
                    raise
                answer.body = b""  # the status says more
        if answer.status not in self._success:
            url = self.endpoint.url(self._path)
            raise status_error(answer.status, bytes(answer.body), answer.headers, url)
        try:
            embeddings = self._vectors(answer)
        except Exception as error:
            raise reading_error(error, answer.status, bytes(answer.body)) from error
        answer.phases_ns["decode"] = time.perf_counter_ns() - received_ns
        return Reply(
            *(embeddings, size, answer.phases_ns, self.codec.server_ns(answer)), told_cached(answer.headers)
        )

    def close(self) -> None:
        """Close the connection, or leave the shared ones."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
