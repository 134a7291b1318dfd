"""HTTP/1.1 as the suite sends it: prepared bytes over a socket, nothing copied, each moment stamped."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence

import gevent
import gevent.socket
from gevent import monkey

from users.endpoint import Endpoint
from users.errors import status_error
from users.http_answer import Answer, read_answer
from users.stamps import Stamps
from users.transport import Prepared

poll = monkey.get_original("select", "poll")
"""The kernel's own: it is asked without waiting, and unlike select it knows sockets beyond the 1,023rd."""


class HttpConnection:
    """POSTs prepared bytes over one kept-alive connection, or over a `fresh` one each time; copies nothing.

    `timeout_s` is for a whole request, connecting included.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float, fresh: bool = False) -> None:
        self._endpoint, self._timeout_s, self._fresh = endpoint, timeout_s, fresh
        self._stamps = Stamps()
        self._start, self._path = b"", ""
        self._socket: gevent.socket.socket | None = None
        self._watch = poll()

    def post(self, path: str, prepared: Prepared) -> Answer:
        """The answer to one request. Raises RequestError on any status but 200."""
        if path != self._path:
            self._path = path
            self._start = f"POST {path} HTTP/1.1\r\nHost: {self._endpoint.address}\r\n".encode()
        try:
            with gevent.Timeout(self._timeout_s):
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

    def _exchange(self, prepared: Prepared) -> Answer:
        stamps = self._stamps
        stamps.clear()
        sock = self._connected()
        refused: OSError | None = None
        stamps.send_began = time.perf_counter_ns()
        try:
            send_all(sock, (self._start, prepared.head, prepared.body))
        except OSError as error:
            # A server may answer and hang up before it has all: that answer counts, too.
            refused = error
        stamps.send_ended = time.perf_counter_ns()
        try:
            answer = read_answer(sock, stamps)
        except OSError as error:
            raise refused or error from None
        answer.lasts &= refused is None
        return answer

    def _connected(self) -> gevent.socket.socket:
        """The connection, made anew where there is none, or the server has closed it since."""
        if self._socket is not None and self._watch.poll(0):
            self.close()
        if self._socket is None:
            self._socket = gevent.socket.create_connection((self._endpoint.host, self._endpoint.port))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._watch = poll()
            self._watch.register(self._socket.fileno(), select.POLLIN)
        return self._socket

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()


def send_all(sock: gevent.socket.socket, parts: Sequence[bytes]) -> None:
    """All parts, one after the other, without putting them together."""
    sent = sock.sendmsg(parts)
    for part in parts:
        if sent < len(part):
            sock.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))
