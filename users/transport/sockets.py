"""A TCP connection under gevent with the least work a request: bytes go out in parts, come as they come.

Over TLS, gevent's socket is asked without waiting; who must wait for it lets others run.
"""

import fcntl
import select
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gevent
import gevent.socket
from gevent import monkey

from users.endpoint import Endpoint, Protocol
from users.tls import context_of

READ, WRITE = 1, 2
"""Of gevent's loop, as in libev."""
poll = monkey.get_original("select", "poll")
"""The kernel's own: called without waiting; unlike select it supports more than 1,024 sockets."""
plain_socket = monkey.get_original("socket", "socket")
ALPN: dict[Protocol, tuple[str, ...]] = {"http": (), "grpc": ("h2",)}
"""The HTTP version offered in the handshake: gRPC requires it."""
RECORD_BYTES = 1 << 14
"""The most bytes in one TLS record."""
INITIAL_BYTES = 14_480
"""What Linux sends over a new connection at once: ten segments."""
MSS_AT, WINDOW_AT, INFO_BYTES = 16, 80, 84
"""Of Linux's tcp_info: where the segments' size and the congestion window stand, and where that ends."""
STARTS = Counter[str]()
"""Of this process: requests of more than that, the congestion windows with which they began, and how many
round trips more they take than with a window of their own size, since it doubles in each.

The window is small on a new connection, and on one that was idle for longer than its retransmission timeout.
"""
UNSENT = 0x894B
"""Linux's SIOCOUTQNSD: how many bytes of a socket are not on the wire yet."""


class Socket:
    """A connection to `host` and `port`; who must wait for it lets others run. Raises OSError.

    `resolve_ns`: how long it took to look the host's name up.
    """

    def __init__(self, host: str, port: int) -> None:
        made, self.resolve_ns = connected(host, port)
        self._take(plain_socket(made.family, made.type, made.proto, fileno=made.detach()))

    def _take(self, made: Any) -> None:
        """Go on over a socket that is connected, asked without waiting."""
        self._socket = made
        self._socket.setblocking(False)
        hub = gevent.get_hub()
        self._wait = hub.wait
        self._readable = hub.loop.io(self._socket.fileno(), READ)
        self._writable = hub.loop.io(self._socket.fileno(), WRITE)
        self._poll = poll()
        self._poll.register(self._socket.fileno(), select.POLLIN)

    @property
    def stale(self) -> bool:
        """Whether the other side has hung up, or said something unasked."""
        return self.readable

    @property
    def readable(self) -> bool:
        """Whether something has come, or its end."""
        return bool(self._poll.poll(0))

    def send_all(self, parts: Sequence[bytes | memoryview]) -> None:
        """All parts, one after the other, without putting them together."""
        sent = self._done(self._socket.sendmsg, parts, self._writable)
        self.note_start(sum(map(len, parts)))
        for part in parts:
            if sent < len(part):
                rest = memoryview(part)[sent:]
                while rest:
                    rest = rest[self._done(self._socket.send, rest, self._writable) :]
            sent = max(0, sent - len(part))

    def note_start(self, size: int) -> None:
        """Count the window of a request of so many bytes, right behind its first ones: a window that was
        valid before an idle time is made smaller only then.
        """
        if size <= INITIAL_BYTES or not hasattr(socket, "TCP_INFO"):
            return
        try:
            told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        except OSError:  # it has broken meanwhile
            return
        if len(told) == INFO_BYTES:
            (segment_bytes,), (segments,) = (struct.unpack_from("=I", told, at) for at in (MSS_AT, WINDOW_AT))
            window_bytes = max(1, segment_bytes * segments)
            STARTS["requests"] += 1
            STARTS["window_bytes"] += window_bytes
            STARTS["round_trips"] += (size // window_bytes + 1).bit_length() - 1

    def recv(self, size: int) -> bytes:
        """The next bytes, up to so many; none where the other side has hung up.

        It is not tried first: right after a request nothing has come, and who waits lets others send.
        """
        self._wait(self._readable)
        return self._done(self._socket.recv, size, self._readable)  # type: ignore[no-any-return]

    def recv_into(self, room: memoryview) -> int:
        """As `recv`, to a place of the caller's; the number of bytes."""
        return self._done(self._socket.recv_into, room, self._readable)  # type: ignore[no-any-return]

    def send_now(self, parts: Sequence[bytes | memoryview]) -> int:
        """How many bytes of the parts it takes without waiting, maybe none."""
        try:
            return self._socket.sendmsg(parts)  # type: ignore[no-any-return]
        except BlockingIOError:
            return 0

    def recv_now(self, size: int) -> bytes | None:
        """As `recv`, but None where nothing has come."""
        try:
            return self._socket.recv(size)  # type: ignore[no-any-return]
        except BlockingIOError:
            return None

    def when_readable(self, call: Callable[[], Any]) -> None:
        """Have gevent's loop call it whenever something has come, until it is closed."""
        self._readable.start(call)

    def when_writable(self, call: Callable[[], Any] | None) -> None:
        """Have gevent's loop call it whenever more would be taken; None ends that."""
        if call is not None:
            self._writable.start(call)
        elif self._writable.active:
            self._writable.stop()

    @property
    def unsent_bytes(self) -> int:
        """What has been taken and is not on the wire yet; 0 where the kernel does not tell."""
        try:
            told = fcntl.ioctl(self._socket.fileno(), UNSENT, bytes(4))
        except (OSError, ValueError):  # closed
            return 0
        return int.from_bytes(told, sys.byteorder)

    def _done(self, call: Callable[[Any], Any], argument: Any, ready: Any) -> Any:
        """What a call gives, once nothing puts it off; TLS may read in order to write, and the reverse."""
        while True:
            try:
                return call(argument)
            except BlockingIOError:
                self._wait(ready)
            except ssl.SSLWantReadError:
                self._wait(self._readable)
            except ssl.SSLWantWriteError:
                self._wait(self._writable)

    def close(self) -> None:
        """Close it. Safe to call twice."""
        self._readable.close()
        self._writable.close()
        self._socket.close()


def take_starts() -> dict[str, int]:
    """This process' STARTS since the last take."""
    taken = dict(STARTS)
    STARTS.clear()
    return taken


def connected(host: str, port: int) -> tuple[Any, int]:
    """gevent's socket, connected to the first address that answers, which holds nothing back; and how many
    nanoseconds the look-up of the host's name took, 0 of an address. Raises OSError.
    """
    began_ns = time.perf_counter_ns()
    places = gevent.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    resolve_ns = time.perf_counter_ns() - began_ns
    fault = OSError(f"{host} has no address")
    for family, kind, proto, _, place in places:
        made = gevent.socket.socket(family, kind, proto)
        try:
            made.connect(place)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            fault = error
        except BaseException:
            made.close()
            raise
        else:
            return made, 0 if place[0] == host else resolve_ns
    raise fault


class Deadline:
    """Throws gevent's Timeout into who is still in its block after so many seconds; for one block at a time.

    gevent.Timeout is created for each use, with its own timer: a dozen times the work.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Started plainly, a timer that was stopped goes on with the time it had left; `again` is the whole.
        self._timer = gevent.get_hub().loop.timer(seconds, seconds)

    def __enter__(self) -> None:
        self._timer.again(self._expire, gevent.getcurrent())

    def __exit__(self, *_: object) -> None:
        self._timer.stop()

    def _expire(self, greenlet: gevent.Greenlet) -> None:
        greenlet.throw(gevent.Timeout(self._seconds))


class TlsSocket(Socket):
    """A connection to `host` and `port` over TLS, its handshake done. Raises OSError.

    `name`: what is asked for by SNI, and what the certificate must have.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext, name: str) -> None:
        # An end without TLS' own farewell is a broken connection, and no end of an answer.
        bare, self.resolve_ns = connected(host, port)
        made: Any = context.wrap_socket(
            bare,
            server_hostname=name,
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
    def alpn(self) -> str | None:
        """What the server has chosen of what was offered; None where it has chosen nothing."""
        chosen: str | None = self._socket.selected_alpn_protocol()
        return chosen

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
        begins = True
        for part in (b"".join(heads), body):
            rest = memoryview(part)
            while rest:
                # Not `send`, which gives 0 where it must wait, and does not say for what.
                rest = rest[self._done(self._socket.write, rest, self._writable) :]
                if begins:
                    begins = False
                    self.note_start(sum(map(len, parts)))

    def send_now(self, parts: Sequence[bytes | memoryview]) -> int:
        """As a plain one's. What could not be taken must come first the next time."""
        taken = 0
        try:
            for record in records(parts):
                taken += self._socket.write(record)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return taken

    def recv_now(self, size: int) -> bytes | None:
        """As a plain one's; all that has been deciphered, for which nothing would come any more."""
        found = []
        try:
            while True:
                found.append(self._socket.recv(size))
                if not self._socket.pending():
                    break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            if not found:
                raise
        return b"".join(found) if found else None

    def recv(self, size: int) -> bytes:
        """As a plain one's, unless something has been deciphered already: then nothing need come."""
        if not self._socket.pending():
            self._wait(self._readable)
        return self._done(self._socket.recv, size, self._readable)  # type: ignore[no-any-return]


def records(parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
    """Parts put together, or cut, to what goes into one TLS record each.

    >>> [len(one) for one in records([b"head", bytes(20_000)])]
    [16384, 3620]
    """
    begun: list[bytes | memoryview] = []
    room = RECORD_BYTES
    for part in parts:
        rest = memoryview(part)
        while rest:
            begun.append(rest[:room])
            rest, room = rest[room:], room - len(begun[-1])
            if not room:
                yield b"".join(begun)
                begun, room = [], RECORD_BYTES
    if begun:
        yield b"".join(begun)


def connect(endpoint: Endpoint) -> Socket:
    """A new connection to an endpoint's server, over TLS where its URL says so. Raises OSError."""
    if endpoint.tls:
        context = context_of(endpoint.security, *ALPN[endpoint.protocol])
        return TlsSocket(endpoint.host, endpoint.port, context, endpoint.tls_name)
    return Socket(endpoint.host, endpoint.port)


def resolved(endpoint: Endpoint) -> list[str]:
    """The IP addresses that the endpoint's host has for this process, in order; none where it has none."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return sorted({str(place[0]) for *_, place in found})
