"""What all ways of sending over HTTP have in common: connections of a user's own, or shared ones."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import gevent
import numpy as np
from numpy.typing import NDArray

from users.endpoint import Endpoint, Protocol
from users.transport.base import PreparedRequest, Reply, Transport
from users.transport.connections import PER_REQUEST, Borrowed, RefCounted
from users.transport.http_connection import HttpConnection
from users.transport.http_library import LibraryConnection
from users.transport.http_response import HttpResponse

ENDLESS_S = 86_400.0
"""For a connection that is lent: what time a request has left there depends on how long it has waited."""

Connection = HttpConnection | LibraryConnection


class BorrowedConnections:
    """A user's place among up to `size` connections to an address, each lent to one request at a time.

    They are opened by the requests that first go over them, and stay open until their last user has gone.
    `timeout_s` is for a whole request of this user, waiting for a connection included.
    """

    shared: ClassVar[RefCounted[Borrowed[Connection]]] = RefCounted()

    def __init__(self, made_by: type[Connection], endpoint: Endpoint, timeout_s: float, size: int) -> None:
        server = endpoint.address, endpoint.tls, endpoint.security
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
    """What all ways of sending over HTTP have in common: their connections, and the path of a request."""

    protocol: ClassVar[Protocol] = "http"
    _connection: Connection | BorrowedConnections | None = None

    @property
    @abstractmethod
    def path(self) -> str:
        """Where requests are POSTed to."""

    @abstractmethod
    def embeddings(self, answer: HttpResponse) -> NDArray[np.float32]:
        """Out of an answer, by the client's own way of decoding. May raise whatever that raises."""

    def open(self) -> None:
        """A connection of its own, or a place among the shared ones; nothing is connected yet."""
        made_by = LibraryConnection if self.by_library else HttpConnection
        size = self.channels.size
        if size:
            self._connection = BorrowedConnections(made_by, self.endpoint, self.timeout_s, size)
        else:
            fresh = self.channels.kind == PER_REQUEST
            self._connection = made_by(self.endpoint, self.timeout_s, fresh)

    def exchange(self, prepared: PreparedRequest) -> Reply:
        """POST and parse."""
        assert self._connection is not None, "open() comes before send()"
        answer = self._connection.post(self.path, prepared)
        received_ns = time.perf_counter_ns()
        embeddings = self.embeddings(answer)
        answer.phases_ns["decode"] = time.perf_counter_ns() - received_ns
        return Reply(embeddings, len(answer.body), answer.phases_ns, self.server_ns(answer))

    def server_ns(self, answer: HttpResponse) -> Mapping[str, int]:
        """The parts that the server stated."""
        return {}

    def close(self) -> None:
        """Close the connection, or leave the shared ones."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
