"""HTTP/2's frames, as they are written and read (RFC 9113, sections 4, 6 and 7)."""

import struct
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY = range(8)
WINDOW_UPDATE, CONTINUATION = 8, 9
"""Types."""
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 0x1, 0x1, 0x4, 0x8, 0x20
"""Flags; ACK is of SETTINGS and PING."""
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(1, 6)
"""Settings."""
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED = range(6)
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM = range(6, 12)
"""Error codes."""
DEFAULT_WINDOW, DEFAULT_FRAME_BYTES = 65_535, 1 << 14
"""Both windows, and the largest frame, until a peer's SETTINGS say otherwise."""
MOST_FRAME_BYTES = (1 << 24) - 1
"""What a peer may set the largest frame to."""
MAX_WINDOW = MAX_STREAM = (1 << 31) - 1
"""The largest window, and the largest stream id."""
HEAD = struct.Struct(">IBI")
"""Length and type in one number, flags, stream."""
HEAD_BYTES, PING_BYTES, PRIORITY_BYTES = 9, 8, 5

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream, payload."""


class ProtocolError(ValueError):
    """What a peer sent is no HTTP/2; `code` is HTTP/2's own for it."""

    def __init__(self, text: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(text)
        self.code = code


def frame_head(kind: int, flags: int, stream: int, size: int) -> bytes:
    """The 9 bytes before a payload of `size` bytes.

    >>> frame_head(DATA, END_STREAM, 3, 5).hex(" ")
    '00 00 05 00 01 00 00 00 03'
    """
    return HEAD.pack(size << 8 | kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A whole frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, stream) + payload


def number_frame(kind: int, stream: int, number: int) -> bytes:
    """WINDOW_UPDATE with its increment, or RST_STREAM with its error code."""
    return frame(kind, 0, stream, number.to_bytes(4, "big"))


def settings_frame(values: dict[int, int]) -> bytes:
    """SETTINGS with these values."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in values.items()))


def settings_in(payload: bytes) -> Iterator[tuple[int, int]]:
    """The settings of a frame, in order. Raises ProtocolError."""
    if len(payload) % 6:
        raise ProtocolError("SETTINGS of a length that is no multiple of 6", FRAME_SIZE_ERROR)
    yield from struct.iter_unpack(">HI", payload)


def number_in(payload: bytes) -> int:
    """The one number of a WINDOW_UPDATE or RST_STREAM. Raises ProtocolError."""
    if len(payload) != 4:
        raise ProtocolError("a frame of a wrong length", FRAME_SIZE_ERROR)
    return int.from_bytes(payload, "big")


def checked_size(value: int) -> int:
    """A peer's largest frame. Raises ProtocolError where it may not be that."""
    if not DEFAULT_FRAME_BYTES <= value <= MOST_FRAME_BYTES:
        raise ProtocolError(f"a largest frame of {value:,} bytes")
    return value


def checked_increment(value: int) -> int:
    """By how much a window grows. Raises ProtocolError where it does not."""
    if not value:
        raise ProtocolError("a WINDOW_UPDATE by 0")
    return value


def goaway_in(stream: int, payload: bytes) -> tuple[int, int]:
    """The last stream that a peer may have processed, and its error code. Raises ProtocolError."""
    if stream or len(payload) < 8:
        raise ProtocolError("a GOAWAY that is not valid", PROTOCOL_ERROR if stream else FRAME_SIZE_ERROR)
    last, code = struct.unpack_from(">II", payload)
    return last & MAX_STREAM, code


def unpadded(payload: bytes) -> bytes:
    """The payload of a frame that is PADDED, without its padding. Raises ProtocolError."""
    if not payload or payload[0] >= len(payload):
        raise ProtocolError("padding that is longer than its frame")
    return payload[1 : len(payload) - payload[0]]


class FrameReader:
    """Frames out of the bytes of a connection, however they were cut. No frame may exceed 16 KiB."""

    def __init__(self) -> None:
        self._begun = b""
        self._first = True

    def read(self, data: bytes) -> list[Frame]:
        """The frames that are whole now; what is left waits for more. Raises ProtocolError."""
        came = self._begun + data if self._begun else data
        frames: list[Frame] = []
        at, size = 0, len(came)
        if self._first:
            check_start(came)
        while size - at >= HEAD_BYTES:
            length_kind, flags, stream = HEAD.unpack_from(came, at)
            length = length_kind >> 8
            if length > DEFAULT_FRAME_BYTES:
                raise ProtocolError(f"a frame of {length:,} bytes", FRAME_SIZE_ERROR)
            end = at + HEAD_BYTES + length
            if end > size:
                break
            frames.append((length_kind & 0xFF, flags, stream & MAX_STREAM, came[at + HEAD_BYTES : end]))
            at = end
        self._first = self._first and not frames
        self._begun = came[at:] if at < size else b""
        return frames


def check_start(came: bytes) -> None:
    """Raises ProtocolError where a connection does not begin with SETTINGS, which need not be whole yet."""
    if came.startswith(b"HTTP/1."):
        raise ProtocolError("an answer in HTTP/1.1, where gRPC needs HTTP/2")
    if len(came) >= HEAD_BYTES and (came[3] != SETTINGS or came[4] & ACK):
        raise ProtocolError("a connection that does not begin with SETTINGS of HTTP/2")
