"""A server's end of an HTTP/2 connection, which a test drives frame by frame.

It holds the client to the letter of RFC 9113: whatever a client must not send fails the test that reads it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import gevent
from hpack import Decoder

from tests.processes import PATIENCE_S
from users.http2.frames import (
    ACK,
    DATA,
    DEFAULT_FRAME_BYTES,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
    PADDED,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
)

HEAD_BYTES = 9
QUIET_S = 0.05
"""How long nothing may come where nothing should: the client is in this process, and has had its turn."""
LIMITS = {
    INITIAL_WINDOW_SIZE: DEFAULT_WINDOW,
    MAX_FRAME_SIZE: DEFAULT_FRAME_BYTES,
    MAX_CONCURRENT_STREAMS: MAX_WINDOW,
}
"""What holds until a server's SETTINGS say otherwise."""
REQUEST_FIELDS = {":method", ":scheme", ":path", ":authority", "grpc-timeout", "te", "content-type"}


def framed(kind: int, flags: int, stream: int, payload: bytes = b"", size: int | None = None) -> bytes:
    """A frame's bytes; `size`: what it says that its length is, where that is not true."""
    said = len(payload) if size is None else size
    return struct.pack(">I", said)[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def numbered(kind: int, stream: int, *numbers: int) -> bytes:
    """A frame of numbers: WINDOW_UPDATE, RST_STREAM, GOAWAY."""
    return framed(kind, 0, stream, struct.pack(f">{len(numbers)}I", *numbers))


def set_to(values: Mapping[int, int]) -> bytes:
    """SETTINGS."""
    return framed(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in values.items()))


def block(fields: Mapping[str, str]) -> bytes:
    """A header block: literals that enter no table."""
    return b"".join(
        b"\0" + string(name.encode()) + string(value.encode("utf-8", "surrogateescape"))
        for name, value in fields.items()
    )


def string(text: bytes) -> bytes:
    """As HPACK has it, of up to 16,510 bytes."""
    if len(text) < 127:
        return bytes((len(text),)) + text
    rest = len(text) - 127
    return bytes((127, rest & 0x7F | 0x80, rest >> 7)) + text


GOOD_HEAD = {":status": "200", "content-type": "application/grpc"}


def head(stream: int, fields: Mapping[str, str] = GOOD_HEAD, flags: int = END_HEADERS) -> bytes:
    """The HEADERS that an answer begins with."""
    return framed(HEADERS, flags, stream, block(fields))


def message(body: bytes, flag: int = 0) -> bytes:
    """A gRPC message."""
    return struct.pack(">BI", flag, len(body)) + body


def trailers(stream: int, status: str = "0", **fields: str) -> bytes:
    """The HEADERS that an answer ends with; `_` in a name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return framed(HEADERS, END_HEADERS | END_STREAM, stream, block({"grpc-status": status, **named}))


def answered(stream: int, body: bytes) -> bytes:
    """A whole good answer, its message in frames of up to 16 KiB."""
    whole = message(body)
    parts = [whole[at : at + DEFAULT_FRAME_BYTES] for at in range(0, len(whole), DEFAULT_FRAME_BYTES)]
    return b"".join((head(stream), *(framed(DATA, 0, stream, part) for part in parts), trailers(stream)))


def refused(stream: int, status: str, fields: Mapping[str, str]) -> bytes:
    """An answer of trailers only."""
    said = block({**GOOD_HEAD, "grpc-status": status, **fields})
    return framed(HEADERS, END_HEADERS | END_STREAM, stream, said)


@dataclass
class Stream:
    """What a client has sent of one call, and may yet."""

    window: int
    fields: Mapping[str, str]
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    answered: bool = False
    reset: int | None = None
    """The client's error code."""

    @property
    def open(self) -> bool:
        """Whether it counts against MAX_CONCURRENT_STREAMS, as the client knows it."""
        return self.reset is None and not (self.ended and self.answered)


class Peer:
    """One accepted connection. Its `send` and the like keep the books that `next` holds the client to."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._came = bytearray()
        self._decoder = Decoder()
        self._unconfirmed: deque[dict[int, int]] = deque()
        self._pings: deque[bytes] = deque()
        self._handlers = {
            DATA: self._data, HEADERS: self._headers, RST_STREAM: self._reset, SETTINGS: self._settings,
            PING: self._ping, GOAWAY: self._goaway, WINDOW_UPDATE: self._credited,
        }  # fmt: skip
        self.limits = dict(LIMITS)
        self.window = DEFAULT_WINDOW
        self.streams: dict[int, Stream] = {}
        self.sent: list[tuple[int, int]] = []
        """The client's DATA frames: stream and length."""
        self.theirs: dict[int, int] = {}
        """The client's SETTINGS."""
        self.credit_of: dict[int, int] = {0: DEFAULT_WINDOW}
        """What the client lets this end send, of the connection (0) and of streams."""
        self.acks = self.pongs = 0
        self.left = False
        self.gone: int | None = None
        """The error code of the client's GOAWAY."""

    # What this end says

    def raw(self, *parts: bytes) -> None:
        """Whatever it is; no books are kept of it."""
        self._socket.sendall(b"".join(parts))

    def greet(self, settings: Mapping[int, int] | None = None, connection_bytes: int = 0) -> Peer:
        """Begin as a server does: SETTINGS, credit for the connection; and hear the client's own."""
        self.set(settings or {})
        if connection_bytes:
            self.credit(0, connection_bytes)
        self.preface()
        self.until(lambda: self.acks == 1)
        return self

    def preface(self) -> None:
        """Read what a client begins with, its SETTINGS included, and confirm them."""
        self.preface_only()
        kind, flags, *_ = self.next()
        assert (kind, flags) == (SETTINGS, 0), "a preface goes on with SETTINGS"

    def preface_only(self) -> None:
        """Read what comes before a client's SETTINGS."""
        while len(self._came) < len(PREFACE):
            assert self.read(PATIENCE_S), "no preface"
        assert self._came.startswith(PREFACE), bytes(self._came[:40])
        del self._came[: len(PREFACE)]

    def set(self, settings: Mapping[int, int]) -> None:
        """Send SETTINGS: what they forbid holds from the client's ACK on, what they allow at once."""
        more = {name: value for name, value in settings.items() if value > self.limits.get(name, value)}
        self._apply(more)
        self._unconfirmed.append({name: value for name, value in settings.items() if name not in more})
        self.raw(set_to(settings))

    def credit(self, stream: int, increment: int) -> None:
        """Send WINDOW_UPDATE; stream 0 is the connection."""
        if stream:
            self.streams[stream].window += increment
        else:
            self.window += increment
        self.raw(numbered(WINDOW_UPDATE, stream, increment))

    def ping(self, payload: bytes) -> None:
        """Send a PING, which is to be echoed."""
        self._pings.append(payload)
        self.raw(framed(PING, 0, 0, payload))

    def answer(self, stream: int, body: bytes = b"good") -> None:
        """A whole good answer."""
        self.end(stream, answered(stream, body))

    def serve(self, *streams: int) -> None:
        """Answer each well once it is whole, one after the other."""
        for stream in streams:
            self.whole(stream)
            self.answer(stream)

    def end(self, stream: int, *parts: bytes) -> None:
        """Bytes with which this end has done with a stream."""
        self.streams[stream].answered = True
        self.raw(*parts)

    def kill(self, stream: int, code: int) -> None:
        """RST_STREAM."""
        self.streams[stream].ended = True
        self.end(stream, numbered(RST_STREAM, stream, code))

    def leave(self, last: int, code: int = 0, debug: bytes = b"") -> None:
        """GOAWAY. What the client has sent must have been read: nothing new may begin from here on."""
        self.left = True
        self.raw(framed(GOAWAY, 0, 0, struct.pack(">II", last, code) + debug))

    def pour(self, stream: int, payload: bytes, frames: int = 1) -> None:
        """DATA as often, padded; it counts against what the client allows."""
        made = framed(DATA, PADDED, stream, b"\xff" + payload + bytes(255))
        self.credit_of[0] -= frames * (len(made) - HEAD_BYTES)
        self.raw(made * frames)

    def close(self) -> None:
        """Hang up. Safe to call twice."""
        self._socket.close()

    # What it hears

    def next(self, seconds: float = PATIENCE_S) -> Frame:
        """The client's next frame, checked. Raises TimeoutError, and EOFError where the client hung up."""
        while (frame := self.take()) is None:
            if not self.read(seconds):
                raise EOFError
        kind, flags, stream, payload = frame
        assert len(payload) <= DEFAULT_FRAME_BYTES or len(payload) <= self.limits[MAX_FRAME_SIZE], len(
            payload
        )
        assert kind in self._handlers, f"a frame of type {kind}"
        self._handlers[kind](flags, stream, payload)
        return frame

    def until(self, holds: Callable[[], bool]) -> None:
        """Read until it holds."""
        while not holds():
            self.next()

    def quiet(self, seconds: float = QUIET_S) -> list[Frame]:
        """What comes until nothing has for so long."""
        heard = []
        while True:
            try:
                heard.append(self.next(seconds))
            except TimeoutError:
                return heard

    def hung_up(self) -> None:
        """Wait until the client has closed the connection; what it said before is checked."""
        with suppress(EOFError, ConnectionError):
            while True:
                self.next()
        self.close()

    def request(self, stream: int) -> Stream:
        """A stream, once its HEADERS are there."""
        self.until(lambda: stream in self.streams)
        return self.streams[stream]

    def skip(self, beginning: bytes) -> None:
        """Leave out what has come where it begins so."""
        if self._came.startswith(beginning):
            del self._came[: len(beginning)]

    def cancelled(self, stream: int) -> int | None:
        """The error code with which the client has reset a stream, once it has."""
        self.until(lambda: stream in self.streams and self.streams[stream].reset is not None)
        return self.streams[stream].reset

    def whole(self, stream: int, packed: bool = False) -> bytes:
        """The message of a stream, once it is all there; `packed`: it must say that it is compressed."""
        self.until(lambda: stream in self.streams and self.streams[stream].ended)
        flag, size = struct.unpack(">BI", self.streams[stream].body[:5])
        body = bytes(self.streams[stream].body[5:])
        assert (flag, size) == (packed, len(body))
        return body

    def uploaded(self, stream: int) -> int:
        """The bytes of DATA of a stream so far."""
        return len(self.streams[stream].body) if stream in self.streams else 0

    def read(self, seconds: float) -> bool:
        """More bytes; none where the client hung up. Raises TimeoutError."""
        with gevent.Timeout(seconds, TimeoutError):
            came = self._socket.recv(1 << 18)
        self._came += came
        return bool(came)

    def take(self) -> Frame | None:
        """The next frame if it is all there."""
        came = self._came
        size = HEAD_BYTES + int.from_bytes(came[:3], "big")
        if len(came) < max(size, HEAD_BYTES):
            return None
        found = came[3], came[4], int.from_bytes(came[5:9], "big"), bytes(came[HEAD_BYTES:size])
        del came[:size]
        return found

    def _apply(self, settings: Mapping[int, int]) -> None:
        grown = settings.get(INITIAL_WINDOW_SIZE, self.limits[INITIAL_WINDOW_SIZE])
        for stream in self.streams.values():
            stream.window += grown - self.limits[INITIAL_WINDOW_SIZE]
        self.limits |= settings

    # What each frame must be

    def _headers(self, flags: int, stream: int, payload: bytes) -> None:
        """A new call: all in one frame, as long as what is asked for fits there."""
        assert flags == END_HEADERS, "HEADERS of a call that has a body"
        assert stream % 2 == 1, "a client's streams are odd"
        assert stream > max(self.streams, default=0), "a stream's id is higher than those before"
        assert not self.left, "a call that begins after GOAWAY"
        standing = sum(one.open for one in self.streams.values())
        assert standing < self.limits[MAX_CONCURRENT_STREAMS], f"{standing} streams are open"
        found = {str(name): str(value) for name, value in self._decoder.decode(payload)}
        names = list(found)
        assert all(name.startswith(":") for name in names[:4]), names
        assert set(names) >= REQUEST_FIELDS, names
        self.streams[stream] = Stream(self.limits[INITIAL_WINDOW_SIZE], found)
        self.credit_of[stream] = self.theirs.get(INITIAL_WINDOW_SIZE, DEFAULT_WINDOW)

    def _data(self, flags: int, stream: int, payload: bytes) -> None:
        one, size = self.streams[stream], len(payload)
        assert not one.ended or one.answered, "DATA after END_STREAM"
        assert one.reset is None, "DATA after RST_STREAM"
        assert flags in (0, END_STREAM), "flags of DATA"
        assert size or flags, "an empty frame that ends nothing"
        assert size <= self.limits[MAX_FRAME_SIZE], f"a frame of {size}"
        assert size <= max(0, one.window), f"{size} bytes, and the stream's window is {one.window}"
        assert size <= max(0, self.window), f"{size} bytes, and the connection's window is {self.window}"
        one.window -= size
        self.window -= size
        one.body += payload
        one.ended = one.ended or bool(flags & END_STREAM)
        self.sent.append((stream, size))

    def _reset(self, flags: int, stream: int, payload: bytes) -> None:
        assert flags == 0
        assert stream in self.streams, "RST_STREAM of an idle stream"
        assert self.streams[stream].reset is None, "a second RST_STREAM"
        (self.streams[stream].reset,) = struct.unpack(">I", payload)

    def _settings(self, flags: int, stream: int, payload: bytes) -> None:
        assert stream == 0
        if flags & ACK:
            assert not payload
            assert self._unconfirmed, "an ACK of nothing"
            self._apply(self._unconfirmed.popleft())
            self.acks += 1
            return
        self.theirs |= dict(struct.iter_unpack(">HI", payload))
        self.raw(framed(SETTINGS, ACK, 0))

    def _ping(self, flags: int, stream: int, payload: bytes) -> None:
        assert stream == 0
        assert len(payload) == 8
        if flags & ACK:
            assert self._pings, "an ACK of no PING"
            assert payload == self._pings.popleft()
            self.pongs += 1
        else:
            self.raw(framed(PING, ACK, 0, payload))

    def _goaway(self, flags: int, stream: int, payload: bytes) -> None:
        assert (flags, stream) == (0, 0)
        _, self.gone = struct.unpack(">II", payload[:8])

    def _credited(self, flags: int, stream: int, payload: bytes) -> None:
        (increment,) = struct.unpack(">I", payload)
        assert flags == 0
        assert increment > 0
        assert stream in self.credit_of, "credit of an idle stream"
        self.credit_of[stream] += increment
        assert self.credit_of[stream] <= MAX_WINDOW, "a window beyond 2^31 - 1"
