"""The floor: plain sockets, without gevent and without Locust, that send prepared bytes and count answers.

One user is a blocking socket. More are one edge-triggered epoll loop, which costs less than a thread each.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Protocol

from benchmarks.generating.arm import Told, arm_options, measured, told
from benchmarks.generating.http2 import Buffers, Calls, message_of
from benchmarks.generating.kinds import KINDS, Bodies, http_head, in_turn, read_bodies

RECEIVE_BYTES, MOST_BUFFERS = 65_536, 512
GOOD = b"HTTP/1.1 200"
CLOSED = "the null server closed a connection"
LENGTH = b"\r\ncontent-length:"


class Session(Protocol):
    """One user's side of a connection, without the socket: see http2.Calls."""

    failures: int

    def begin(self) -> Buffers:
        """What the next request begins with."""

    def feed(self, data: bytes) -> Buffers | None:
        """What is to be sent upon an answer's bytes; None when it has ended."""


class Posts:
    """The session of HTTP/1.1."""

    def __init__(self, requests: Sequence[Buffers], first: int = 0) -> None:
        self._requests = in_turn(requests, first)
        self._left = 0
        self.failures = 0

    def begin(self) -> Buffers:
        """The head and the body, side by side."""
        return next(self._requests)

    def feed(self, data: bytes) -> Buffers | None:
        """Nothing more to send; None when the declared length has come."""
        if not self._left:
            head, _, begun = data.partition(b"\r\n\r\n")
            self.failures += not head.startswith(GOOD)
            at = head.lower().index(LENGTH) + len(LENGTH)
            self._left = int(head[at:].partition(b"\r")[0]) - len(begun)
        else:
            self._left -= len(data)
        return [] if self._left else None


def send_all(sock: socket.socket, buffers: Buffers) -> None:
    """Send buffers on a blocking socket."""
    while buffers:
        buffers = unsent(buffers, sock.sendmsg(buffers[:MOST_BUFFERS]))


def unsent(buffers: Buffers, sent: int) -> Buffers:
    """What is left of buffers after so many bytes."""
    for number, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[number + 1 :]]
        sent -= len(buffer)
    return []


def connect(address: tuple[str, int]) -> socket.socket:
    """A connection without Nagle's delay."""
    sock = socket.create_connection(address)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Blocking:
    """One user on a blocking socket."""

    def __init__(self, session: Session, address: tuple[str, int]) -> None:
        self.session, self._sock = session, connect(address)

    def spin(self, seconds: float) -> list[float]:
        """Request after request; the seconds that each took."""
        took, sock, session = [], self._sock, self.session
        clock = time.perf_counter
        end = clock() + seconds
        began = clock()
        while began < end:
            more: Buffers | None = session.begin()
            while more is not None:
                if more:
                    send_all(sock, more)
                data = sock.recv(RECEIVE_BYTES)
                if not data:
                    raise ConnectionError(CLOSED)
                more = session.feed(data)
            now = clock()
            took.append(now - began)
            began = now
        return took

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()


class User:
    """A user of the epoll loop."""

    __slots__ = ("began", "buffers", "session", "sock")

    def __init__(self, session: Session, address: tuple[str, int]) -> None:
        self.session, self.sock = session, connect(address)
        self.sock.setblocking(False)
        self.buffers: Buffers = []
        self.began = 0.0


class Epoll:
    """All users in one loop; edge-triggered, so that a socket is registered once."""

    def __init__(self, sessions: Sequence[Session], address: tuple[str, int]) -> None:
        self._users = {user.sock.fileno(): user for user in (User(each, address) for each in sessions)}
        self._epoll = select.epoll()
        for number, user in self._users.items():
            self._begin(user)
            self._epoll.register(number, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def spin(self, seconds: float) -> list[float]:
        """Requests that end within the time; those in flight then go on in the next call."""
        took: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for number, events in self._epoll.poll():
                user = self._users[number]
                if events & select.EPOLLIN:
                    self._hear(user, took)
                if user.buffers:
                    self._push(user)
        return took

    def close(self) -> None:
        """Close every connection."""
        self._epoll.close()
        for user in self._users.values():
            user.sock.close()

    def _begin(self, user: User) -> None:
        user.began = time.perf_counter()
        user.buffers = user.session.begin()
        self._push(user)

    def _push(self, user: User) -> None:
        try:
            while user.buffers:
                user.buffers = unsent(user.buffers, user.sock.sendmsg(user.buffers[:MOST_BUFFERS]))
        except BlockingIOError:
            pass

    def _hear(self, user: User, took: list[float]) -> None:
        # A short read has emptied the socket: asking again would cost a call for nothing.
        short = False
        while not short:
            try:
                data = user.sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionError(CLOSED)
            short = len(data) < RECEIVE_BYTES
            more = user.session.feed(data)
            if more is None:
                took.append(time.perf_counter() - user.began)
                self._begin(user)
            elif more:
                user.buffers += more


def sessions_of(kind: str, bodies: Bodies, users: int, address: str) -> list[Session]:
    """As many sessions as there are users, each beginning at another body."""
    made = KINDS[kind]
    if made.protocol == "grpc":
        messages = [message_of(body) for body in bodies.bodies]
        return [Calls(messages, address, first) for first in range(users)]
    requests: list[Buffers] = [
        [http_head(made, bodies.headers, address, len(body)), body] for body in bodies.bodies
    ]
    return [Posts(requests, first) for first in range(users)]


def main() -> int:
    """Spin to warm up, spin on the clock, tell."""
    options = arm_options(__doc__).parse_args()
    address = ("127.0.0.1", options.port)
    bodies = read_bodies(options.bodies, options.kind)
    sessions = sessions_of(options.kind, bodies, options.users, f"127.0.0.1:{options.port}")
    floor = Blocking(sessions[0], address) if options.users == 1 else Epoll(sessions, address)
    floor.spin(options.warm_up)
    with measured() as span:
        took = floor.spin(options.seconds)
    floor.close()
    failures = sum(session.failures for session in sessions)
    told(Told.of(span, len(took), took, failures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
