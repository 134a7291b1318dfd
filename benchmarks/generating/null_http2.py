"""A null server of gRPC that is made as that of HTTP: one thread, and bodies that are thrown away.

python -m benchmarks.generating.null_http2 PORT

What a send costs depends on who receives: over loopback, one to grpcio's server (null_grpc) takes up to twice
the processor time of one to null_http. Where gRPC is compared with HTTP, gRPC is sent here. It takes every
call to be one of ModelInfer, and reads of its frames the heads.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from contextlib import suppress
from functools import cache

from benchmarks.generating import http2, null_http
from benchmarks.generating.answers import batch_of
from benchmarks.generating.children import server_options
from benchmarks.generating.http2 import FRAME_HEAD, LARGEST_WINDOW, PREFACE, frame, literal, message_of
from benchmarks.generating.null_grpc import infer_answer
from benchmarks.generating.null_http import BACKLOG, HEAD_BYTES, SCRAP_BYTES

LARGEST_FRAME = 4 << 20
"""As grpcio's server has it."""
CREDIT_BYTES = 1 << 30
STATUS_OK = b"\x88"
SETTINGS = struct.pack(
    ">HIHI", http2.SETTING_INITIAL_WINDOW, LARGEST_WINDOW, http2.SETTING_MAX_FRAME, LARGEST_FRAME
)
GREETING = frame(http2.SETTINGS, 0, 0, SETTINGS) + http2.gift(LARGEST_WINDOW - http2.INITIAL_WINDOW)
HEADERS, TRAILERS = STATUS_OK + literal("content-type", "application/grpc"), literal("grpc-status", "0")


class Connection(null_http.Connection):
    """One client: `left` bytes of a DATA frame are to come, with which the stream `ends`, if it does."""

    __slots__ = ("ends", "preface_left", "received", "sizes")

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.ends, self.preface_left, self.received = 0, len(PREFACE), 0
        self.sizes = Counter[int]()
        """Bytes of each stream's message so far."""
        sock.sendall(GREETING)


class Server(null_http.Server):
    """As that of HTTP, but for what it reads."""

    made = Connection

    def _read(self, client: null_http.Connection) -> bool:
        """Take what has come; False at the connection's end. Raises BlockingIOError for "no more yet"."""
        assert isinstance(client, Connection)
        if not client.left:
            got = client.sock.recv(HEAD_BYTES)
            if not got:
                return False
            self._take(client, got)
        while client.left:
            discarded = client.sock.recv_into(self._scrap, min(client.left, SCRAP_BYTES), socket.MSG_TRUNC)
            if not discarded:
                return False
            client.left -= discarded
        self._answer(client)
        return True

    def _take(self, client: Connection, got: bytes) -> None:
        data = client.head + got
        at = min(client.preface_left, len(data))
        client.preface_left -= at
        while len(data) - at >= FRAME_HEAD and not client.left:
            size_kind, flags, stream = struct.unpack_from(">IBI", data, at)
            kind, size, begins = size_kind & 0xFF, size_kind >> 8, at + FRAME_HEAD
            came = min(size, len(data) - begins)
            if kind == http2.DATA:
                self._answer(client)
                client.left, client.ends = size - came, stream if flags & http2.END_STREAM else 0
                client.sizes[stream] += size
                client.received += size
            elif came < size:
                break
            else:
                self._reply(client, kind, flags, data[begins : begins + size])
            at = begins + came
        client.head = data[at:]

    def _reply(self, client: Connection, kind: int, flags: int, payload: bytes) -> None:
        if kind == http2.SETTINGS and not flags & http2.ACK:
            client.sock.sendall(frame(http2.SETTINGS, http2.ACK, 0, b""))
        elif kind == http2.PING and not flags & http2.ACK:
            client.sock.sendall(frame(http2.PING, http2.ACK, 0, payload))

    def _answer(self, client: Connection) -> None:
        """Answer the stream that has ended, if one has."""
        stream, client.ends = client.ends, 0
        if not stream:
            return
        self.served += 1
        credit = b""
        if client.received >= CREDIT_BYTES:
            credit, client.received = http2.gift(client.received), 0
        client.sock.sendall(credit + answer(stream, batch_of(client.sizes.pop(stream))))


def answer(stream: int, batch: int) -> bytes:
    """Headers, the message, trailers."""
    return b"".join(
        (
            frame(http2.HEADERS, http2.END_HEADERS, stream, HEADERS),
            frame(http2.DATA, 0, stream, message(batch)),
            frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, TRAILERS),
        )
    )


@cache
def message(batch: int) -> bytes:
    """As grpcio's server sends it."""
    return message_of(infer_answer(batch))


def main() -> None:
    """Serve until killed."""
    address = ("127.0.0.1", server_options(__doc__))
    with suppress(KeyboardInterrupt), socket.create_server(address, backlog=BACKLOG) as listening:
        Server(listening).serve()


if __name__ == "__main__":
    main()
