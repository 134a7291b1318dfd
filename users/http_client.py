"""HTTP/1.1 on geventhttpclient for all that is sent over HTTP: a user's own connection, or shared ones."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import gevent

from users.channels import PER_REQUEST
from users.endpoint import Endpoint, Protocol
from users.errors import status_error
from users.sharing import Lending, Shelf
from users.stamped import StampedClient, Stamps
from users.transport import Transport

ENDLESS_S = 86_400.0
"""For a connection that is lent: what time a request has left there depends on how long it has waited."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: its body, its headers (names in lower case), and the request's phases on the wire."""

    body: bytes
    headers: Mapping[str, str]
    phases_ns: dict[str, int]


class HttpConnection:
    """POSTs prepared bytes over one kept-alive connection, or over a `fresh` one each time.

    `timeout_s` is for a whole request.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float, fresh: bool = False) -> None:
        self._endpoint, self._timeout_s, self._fresh = endpoint, timeout_s, fresh
        self._stamps = Stamps()
        self._client = self._new_client()

    def _new_client(self) -> StampedClient:
        return StampedClient(self._stamps, self._endpoint.host, self._endpoint.port, self._timeout_s)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """The answer to one request. Raises RequestError on any status but 200.

        The library's own timeouts are for each read: an answer that trickles in would outlive them.
        """
        self._stamps.clear()
        try:
            with gevent.Timeout(self._timeout_s):
                response = self._client.post(path, body=body, headers=dict(headers))
                data = bytes(response.read())
        except BaseException:
            # Cut off in the middle, the connection is of no more use.
            self._client.close()
            self._client = self._new_client()
            raise
        if self._fresh:
            self._client.close()
            self._client = self._new_client()
        if response.status_code != 200:
            raise status_error(response.status_code, data)
        named = {name.lower(): value for name, value in response.items()}
        return Answer(data, named, self._stamps.phases_ns())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class LentConnections:
    """A user's place among up to `size` connections to an address, each lent to one request at a time.

    They are opened by the requests that first go over them, and stay open until their last user has gone.
    `timeout_s` is for a whole request of this user, waiting for a connection included.
    """

    shelf: ClassVar[Shelf[Lending[HttpConnection]]] = Shelf()

    def __init__(self, endpoint: Endpoint, timeout_s: float, size: int) -> None:
        self._name, self._timeout_s, self._new = (endpoint.address, size), timeout_s, True
        self._lending = self.shelf.join(
            self._name, lambda: Lending(size, lambda: HttpConnection(endpoint, ENDLESS_S))
        )

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """As HttpConnection's; its phase `send` begins with waiting for a connection."""
        began_ns = time.perf_counter_ns()
        if self._new:
            self._new = False
            self._lending.grow()
        with gevent.Timeout(self._timeout_s), self._lending.lent() as connection:
            waited_ns = time.perf_counter_ns() - began_ns
            answer = connection.post(path, body, headers)
        answer.phases_ns["send"] += waited_ns
        return answer

    def close(self) -> None:
        """Leave them to the others."""
        self.shelf.leave(self._name)


class HttpTransport(Transport):
    """What all ways of sending over HTTP have in common: their connections."""

    protocol: ClassVar[Protocol] = "http"
    _connection: HttpConnection | LentConnections | None = None

    def open(self) -> None:
        """A connection of its own, or a place among the shared ones; nothing is connected yet."""
        size = self.channels.size
        if size:
            self._connection = LentConnections(self.endpoint, self.timeout_s, size)
        else:
            fresh = self.channels.kind == PER_REQUEST
            self._connection = HttpConnection(self.endpoint, self.timeout_s, fresh)

    def close(self) -> None:
        """Close the connection, or leave the shared ones."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
