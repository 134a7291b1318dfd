"""One answer of HTTP/1.1 with its moments, and the connection over which it comes.

geventhttpclient's parser reads what has not the usual form.
"""

import errno
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from types import MappingProxyType

from users.codecs.base import PreparedRequest
from users.endpoint import Endpoint
from users.errors import ErrorKind, kind_of
from users.transport.size_limits import LONGEST_HEAD_BYTES, BoundedResponse
from users.transport.sockets import Deadline, Socket

CHUNK_BYTES = 1 << 16
MOST_DIGITS = 18
END_OF_HEAD = b"\r\n\r\n"
BODILESS = frozenset({204, 304})
IDLE_NS = 100_000_000
"""Without a request: no usual server closes a connection sooner for being idle."""


class Stamps:
    """The moments of one request on the wire, in `perf_counter_ns`; 0 where it has not come so far.

    `connect_ns`: how long it took to connect, 0 where that was not needed. `resend_ns`: of it, what was lost
    on a connection that had been closed while it was idle; `resolve_ns`: what the look-up of the host's name
    took.
    """

    __slots__ = (
        *("connect_ns", "first_byte", "last_byte", "resend_ns", "resolve_ns", "send_began", "send_ended"),
    )

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Before a request."""
        self.connect_ns = self.send_began = self.send_ended = self.first_byte = self.last_byte = 0
        self.resend_ns = self.resolve_ns = 0

    def connected(self, took_ns: int, resolve_ns: int) -> None:
        """A new connection was made for it, in so long, the look-up of the host's name included."""
        self.connect_ns += took_ns
        self.resolve_ns += resolve_ns

    def send_again(self, lost_ns: int) -> None:
        """It is sent once more over a new connection, so much later."""
        self.clear()
        self.connect_ns = self.resend_ns = lost_ns

    def phases_ns(self) -> dict[str, int]:
        """`send`: first to last byte handed to the kernel. `wait`: from there to the answer's first byte, 0
        where that came earlier. `receive`: from its first byte to its last. `connect`, only where a new
        connection was made: the host's name looked up, TCP's handshake, and that of TLS. Of it
        `resolve`, the first of these, and `resend`, only of what was sent once more.
        """
        found = {
            "send": self.send_ended - self.send_began,
            "wait": max(0, self.first_byte - self.send_ended),
            "receive": self.last_byte - self.first_byte,
        }
        if self.connect_ns:
            found["connect"] = self.connect_ns
        if self.resolve_ns:
            found["resolve"] = self.resolve_ns
        if self.resend_ns:
            found["resend"] = self.resend_ns
        return found


@dataclass(slots=True)
class HttpResponse:
    """An answer: its status, its headers (names in lower case), its body, whether its connection can be used
    again, and the request's phases on the wire.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray
    lasts: bool
    phases_ns: dict[str, int]


class Connection(ABC):
    """POSTs prepared bytes over one kept-alive connection, or over a `fresh` one each time.

    `timeout_s` is for a whole request, connecting included. One that meets the end of a connection that was
    idle, before any byte of an answer, is sent once more over a new one (RFC 9112, 9.3.1): servers close idle
    connections, and such a request may cross with that. An inference can be asked for twice.
    """

    _used_ns = 0
    """When the connection was last of use; 0 where there is none."""

    def __init__(self, endpoint: Endpoint, timeout_s: float, fresh: bool = False) -> None:
        self._endpoint, self._timeout_s, self._fresh = endpoint, timeout_s, fresh
        self._stamps = Stamps()
        self._deadline = Deadline(timeout_s)

    def post(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        """The answer to one request, of whatever status."""
        self._stamps.clear()
        try:
            with self._deadline:
                answer = self._exchange_again(path, prepared)
        except BaseException:
            # Cut off in the middle, the connection is of no more use.
            self._used_ns = 0
            self.close()
            raise
        self._used_ns = perf_counter_ns()
        if self._fresh or not answer.lasts:
            self._used_ns = 0
            self.close()
        return answer

    def _exchange_again(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        """As `_exchange`, a second time where an idle connection had been closed."""
        stamps, used_ns, began_ns = self._stamps, self._used_ns, perf_counter_ns()
        try:
            return self._exchange(path, prepared)
        except Exception as error:
            was_idle = used_ns and began_ns - used_ns >= IDLE_NS and not stamps.connect_ns
            if not was_idle or stamps.first_byte or kind_of(error) is not ErrorKind.RESET:
                raise
        self.close()
        stamps.send_again(perf_counter_ns() - began_ns)
        return self._exchange(path, prepared)

    @abstractmethod
    def _exchange(self, path: str, prepared: PreparedRequest) -> HttpResponse:
        """Connect where that has not been done, send and receive, all of it stamped."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; the next request makes another."""


def read_answer(socket: Socket, stamps: Stamps, largest_bytes: int) -> HttpResponse:
    """The answer that comes next, its first and last byte stamped; no memory is set aside for a larger one.

    Raises ConnectionResetError where the connection ends before it does, ValueError and the library's own
    where it is no HTTP.
    """
    data = received(socket)
    stamps.first_byte = perf_counter_ns()
    while (end := data.find(END_OF_HEAD)) < 0:
        if len(data) > LONGEST_HEAD_BYTES or not data.startswith(b"HTTP/1."[: len(data)]):
            raise ValueError("an answer that is not HTTP/1.1")
        data += received(socket)
    version, status, headers = parsed(data[:end])
    length = headers.get("content-length", "")
    usual = status >= 200 and status not in BODILESS and "transfer-encoding" not in headers
    if not usual or not length.isdecimal():
        return read_by_library(socket, data, stamps, largest_bytes)
    if len(length) > MOST_DIGITS or int(length) > largest_bytes:
        raise ValueError(f"an answer of {length:.20} bytes")
    body = whole(socket, data[end + len(END_OF_HEAD) :], int(length))
    stamps.last_byte = perf_counter_ns()
    wish = headers.get("connection", "").lower()
    lasts = wish != "close" if version == "HTTP/1.1" else wish == "keep-alive"
    return HttpResponse(status, headers, body, lasts, stamps.phases_ns())


@functools.lru_cache(maxsize=64)
def parsed(head: bytes) -> tuple[str, int, Mapping[str, str]]:
    """Version, status and headers. Raises ValueError.

    A server's answers have the same head, answer for answer, or for as long as its `Date` stays the same.

    >>> parsed(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2")
    ('HTTP/1.1', 200, mappingproxy({'content-length': '2'}))
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("an answer that is not HTTP/1.1")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return version, int(rest[:3]), MappingProxyType(headers)


def whole(socket: Socket, begun: bytes, length: int) -> bytes | bytearray:
    """A body of so many bytes, of which some have come; each is copied once. Raises ValueError."""
    missing = length - len(begun)
    if missing < 0:
        raise ValueError("an answer with more bytes than its Content-Length says")
    if not missing:
        return begun
    body = bytearray(length)
    body[: len(begun)] = begun
    room = memoryview(body)[len(begun) :]
    while room:
        count = socket.recv_into(room)
        if not count:
            raise broken()
        room = room[count:]
    return body


def read_by_library(socket: Socket, begun: bytes, stamps: Stamps, largest_bytes: int) -> HttpResponse:
    """An answer in chunks, until the connection's end, without a body, or behind an interim one."""
    response = BoundedResponse(socket, begun, largest_bytes)
    body = bytes(response.read())
    stamps.last_byte = perf_counter_ns()
    headers = {name.lower(): value for name, value in response.items()}
    return HttpResponse(response.status_code, headers, body, not response.should_close(), stamps.phases_ns())


def received(socket: Socket) -> bytes:
    """What has come, at least one byte."""
    data: bytes = socket.recv(CHUNK_BYTES)
    if not data:
        raise broken()
    return data


def broken() -> ConnectionResetError:
    """The other side has hung up."""
    return ConnectionResetError(errno.ECONNRESET, "connection closed before the whole answer had come")
