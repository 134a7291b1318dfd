"""Just enough HTTP/2 for one call of gRPC after another on one connection; no socket in here.

Frames of RFC 9113, headers as HPACK literals (RFC 7541) that need no table. Of an answer's headers only the
frames are seen, not their contents: an answer is good where it is as long as the first of its connection.

It shares nothing with users/http2, whose cost is compared with that of this: what is added there must not be
added to the floor as well.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from benchmarks.generating.kinds import GRPC_METHOD

Buffers = list[bytes | memoryview]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW, MAX_FRAME, LARGEST_WINDOW = 65_535, 16_384, 2**31 - 1
SETTING_INITIAL_WINDOW, SETTING_MAX_FRAME = 4, 5
FRAME_HEAD = 9
STATIC_POST, STATIC_HTTP = b"\x83", b"\x86"


def frame_head(kind: int, flags: int, stream: int, size: int) -> bytes:
    """The 9 bytes before a frame's payload.

    >>> frame_head(DATA, END_STREAM, 3, 5).hex(" ")
    '00 00 05 00 01 00 00 00 03'
    """
    return struct.pack(">IBI", size << 8 | kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A whole frame."""
    return frame_head(kind, flags, stream, len(payload)) + payload


def literal(name: str, value: str) -> bytes:
    """A header field that enters no table: neither name nor value may have more than 126 bytes."""
    texts = (name.encode(), value.encode())
    return b"\x00" + b"".join(bytes([len(text)]) + text for text in texts)


def call_headers(authority: str, path: str = GRPC_METHOD) -> bytes:
    """The header block of a call."""
    fields = {":path": path, ":authority": authority, "te": "trailers", "content-type": "application/grpc"}
    return STATIC_POST + STATIC_HTTP + b"".join(literal(*field) for field in fields.items())


def gift(size: int) -> bytes:
    """A WINDOW_UPDATE of the connection: the peer may send so many bytes more."""
    return frame(WINDOW_UPDATE, 0, 0, size.to_bytes(4, "big"))


def message_of(body: bytes) -> bytes:
    """A gRPC message: not compressed, its length, its bytes."""
    return b"\x00" + len(body).to_bytes(4, "big") + body


class Calls:
    """One user's connection: `begin` a call, then `feed` what the peer says until it returns None.

    Both give what is to be sent next. It keeps to both windows and to the peer's largest frame.
    """

    def __init__(self, messages: Sequence[bytes], authority: str, first: int = 0) -> None:
        self._messages = [memoryview(message) for message in messages]
        self._next = first % len(messages)
        self._block = call_headers(authority)
        self._stream = -1
        self._left = memoryview(b"")
        self._came = b""
        self._window, self._stream_window, self._initial_window = INITIAL_WINDOW, 0, INITIAL_WINDOW
        self._largest = MAX_FRAME
        self._received = self._expected = 0
        self._ended = False
        self._owed: Buffers = []
        self.failures = 0

    def begin(self) -> Buffers:
        """The next request's headers and as much of its message as may go now."""
        opening, self._owed = self._owed, []
        if self._stream < 0:
            # Answers are never held back by our own window: it is opened as far as it goes, once.
            opening = [PREFACE, frame(SETTINGS, 0, 0, b""), gift(LARGEST_WINDOW - INITIAL_WINDOW)]
        self._stream += 2
        self._left = self._messages[self._next]
        self._next = (self._next + 1) % len(self._messages)
        self._stream_window = self._initial_window
        self._received, self._ended = 0, False
        return [*opening, frame(HEADERS, END_HEADERS, self._stream, self._block), *self._data()]

    def feed(self, data: bytes) -> Buffers | None:
        """What is to be sent upon these bytes; None when the answer has ended."""
        came = self._came + data if self._came else data
        replies: Buffers = []
        at = 0
        while len(came) - at >= FRAME_HEAD:
            size_kind, flags, stream = struct.unpack_from(">IBI", came, at)
            end = at + FRAME_HEAD + (size_kind >> 8)
            if end > len(came):
                break
            replies += self._take(size_kind & 0xFF, flags, stream, came[at + FRAME_HEAD : end])
            at = end
        self._came = came[at:]
        if self._ended:
            self._owed = replies  # they go with the next request
            return None
        return [*replies, *self._data()]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> Buffers:
        if kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(payload, "big"))
        elif kind == SETTINGS and not flags & ACK:
            self._settle(payload)
            return [frame(SETTINGS, ACK, 0, b"")]
        elif kind == PING and not flags & ACK:
            return [frame(PING, ACK, 0, payload)]
        elif kind == GOAWAY:
            raise ConnectionError("the null server of gRPC ended the connection")
        elif stream == self._stream:
            self._hear(kind, flags, payload)
        return []

    def _widen(self, stream: int, by: int) -> None:
        if stream == 0:
            self._window += by
        elif stream == self._stream:
            self._stream_window += by

    def _settle(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == SETTING_INITIAL_WINDOW:
                self._stream_window += value - self._initial_window
                self._initial_window = value
            elif name == SETTING_MAX_FRAME:
                self._largest = value

    def _hear(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == DATA:
            self._received += len(payload)
        if kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self._ended = True
            self._expected = self._expected or self._received
            self.failures += not self._received or self._received != self._expected

    def _data(self) -> Buffers:
        buffers: Buffers = []
        while self._left:
            size = min(len(self._left), self._largest, self._window, self._stream_window)
            if size <= 0:
                break
            flags = END_STREAM if size == len(self._left) else 0
            buffers += (frame_head(DATA, flags, self._stream, size), self._left[:size])
            self._left = self._left[size:]
            self._window -= size
            self._stream_window -= size
        return buffers
