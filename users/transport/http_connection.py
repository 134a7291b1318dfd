"""HTTP/1.1 as the suite sends it: prepared bytes over a socket, nothing copied, each moment stamped."""

from __future__ import annotations

import ssl
import time

from users.endpoint import Endpoint
from users.errors import status_error
from users.tls import authorization
from users.transport.base import PreparedRequest
from users.transport.http_response import HttpResponse, Stamps, read_answer
from users.transport.sockets import Deadline, Socket, connect


class HttpConnection:
    """POSTs prepared bytes over one kept-alive connection, or over a `fresh` one each time; copies nothing.

    `timeout_s` is for a whole request, connecting included.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float, fresh: bool = False) -> None:
        self._endpoint, self._fresh = endpoint, fresh
        self._stamps = Stamps()
        self._start, self._path = b"", ""
        self._wire: Socket | None = None
        self._deadline = Deadline(timeout_s)

    def post(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        """The answer to one request. Raises RequestError on any status but 200."""
        if path != self._path:
            self._start, self._path = self._start_of(path), path
        try:
            with self._deadline:
                answer = self._exchange(prepared)
        except BaseException:
            # Cut off in the middle, the connection is of no more use.
            self.close()
            raise
        if self._fresh or not answer.lasts:
            self.close()
        if answer.status != 200:
            raise status_error(answer.status, bytes(answer.body))
        return answer

    def _start_of(self, path: str) -> bytes:
        """What every request to a path begins with; the token is here alone, since prepared ones are kept."""
        named = {"Host": self._endpoint.address, **authorization(self._endpoint.security)}
        lines = [f"{name}: {value}\r\n" for name, value in named.items()]
        return f"POST {path} HTTP/1.1\r\n{''.join(lines)}".encode("latin-1")

    def _exchange(self, prepared: PreparedRequest) -> HttpResponse:
        stamps = self._stamps
        stamps.clear()
        wire = self._connected()
        refused: OSError | None = None
        stamps.send_began = time.perf_counter_ns()
        try:
            wire.send_all((self._start, prepared.head, prepared.body))
        except OSError as error:
            # A server may answer and hang up before it has all: that answer counts, too.
            refused = error
        stamps.send_ended = time.perf_counter_ns()
        try:
            answer = read_answer(wire, stamps, prepared.largest_reply)
        except OSError as error:
            # TLS says what was wrong only when it is listened to.
            raise (error if isinstance(error, ssl.SSLError) else refused or error) from None
        answer.lasts &= refused is None
        return answer

    def _connected(self) -> Socket:
        """The connection, made anew where there is none, or the server has closed it since."""
        if self._wire is not None and self._wire.stale:
            self.close()
        if self._wire is None:
            self._wire = connect(self._endpoint)
        return self._wire

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
