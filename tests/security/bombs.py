"""Servers that answer with far more than anybody asked for, on loopback.

    with serving(BOMBS["chunks"]) as address: ...

Each is given a connection, and sends until the other side has had enough.
"""

import gzip
import itertools
import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

MB = 1 << 20
MOST_BYTES = 2_000 * MB
"""Of one answer: where nobody stops it, that is enough to be seen."""
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
UNPACKING, UNPACKED_MB = "unpacking", 512

Bomb = Callable[[socket.socket], None]


def poured(begin: bytes, more: bytes) -> Bomb:
    """The beginning of an answer, and then the same for ever."""

    def pour(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(begin)
        piece = more * max(1, 65536 // len(more))
        for _ in range(MOST_BYTES // len(piece)):
            connection.sendall(piece)

    return pour


def told(body: bytes) -> Bomb:
    """A whole answer."""

    def tell(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    return tell


def unpacking(connection: socket.socket) -> None:
    """Over HTTP/2, one message of gRPC's that gzip has made small, whether the client takes such or not."""
    packed = gzip.compress(bytes(UNPACKED_MB * MB), 9)
    message = b"\1" + struct.pack(">I", len(packed)) + packed
    began = connection.recv(len(PREFACE), socket.MSG_WAITALL)
    assert began == PREFACE, began
    connection.sendall(frame(SETTINGS, 0, 0, b""))
    frames, room, window = frames_of(connection), {0: 65535}, 65535
    for kind, _, stream, body in frames:
        if kind == SETTINGS:
            told = dict(struct.iter_unpack(">HI", body))
            window = told.get(INITIAL_WINDOW_SIZE, window)
        elif kind == WINDOW_UPDATE:
            room[stream] += struct.unpack(">I", body)[0]
        elif kind == HEADERS:
            break
    room[stream] = window
    names = {":status": "200", "content-type": "application/grpc", "grpc-encoding": "gzip"}
    connection.sendall(frame(HEADERS, END_HEADERS, stream, literal(names)))
    for at in range(0, len(message), 16_000):
        piece = message[at : at + 16_000]
        while min(room.values()) < len(piece):
            kind, _, number, body = next(frames)
            if kind == WINDOW_UPDATE and number in room:
                room[number] += struct.unpack(">I", body)[0]
        connection.sendall(frame(DATA, 0, stream, piece))
        room = {number: left - len(piece) for number, left in room.items()}
    connection.sendall(frame(HEADERS, END_HEADERS | END_STREAM, stream, literal({"grpc-status": "0"})))
    for _ in frames:
        pass


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """One frame of HTTP/2. Source: RFC 9113, section 4.1."""
    return struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + body


def literal(names: dict[str, str]) -> bytes:
    """Headers without indexing or Huffman's code. Source: RFC 7541, section 6.2.2."""
    texts = itertools.chain.from_iterable((b"\0", sized(name), sized(value)) for name, value in names.items())
    return b"".join(texts)


def sized(text: str) -> bytes:
    """A string literal of fewer than 127 bytes."""
    return bytes((len(text),)) + text.encode()


def frames_of(connection: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """What the client sends: kind, flags, stream, body; its settings are acknowledged."""
    while len(head := connection.recv(9, socket.MSG_WAITALL)) == 9:
        (length,), kind, flags = struct.unpack(">I", b"\0" + head[:3]), head[3], head[4]
        body = connection.recv(length, socket.MSG_WAITALL) if length else b""
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0, b""))
        yield kind, flags, struct.unpack(">I", head[5:])[0], body


BOMBS: dict[str, Bomb] = {
    "length": poured(OK + b"Content-Length: %d\r\n\r\n" % MOST_BYTES, b"[" * 65536),
    "chunks": poured(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    "small chunks": poured(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "until it closes": poured(OK + b"\r\n", b"x" * 65536),
    "headers": poured(OK, b"a: b\r\n"),
    "a header": poured(OK + b"a: ", b"b"),
    "a status": poured(b"HTTP/1.1 200 ", b"O"),
    "interim answers": poured(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers of interim answers": poured(b"HTTP/1.1 103 Early Hints\r\n", b"a: b\r\n"),
    "trailers": poured(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"a: b\r\n"),
    "nesting": told(b'{"embeddings":' + b"[" * 900_000),
    "lists": told(b'{"embeddings":[' + b"[]," * 300_000 + b"[]]}"),
}
"""Over HTTP/1.1, by what there is too much of."""


@contextmanager
def serving(bomb: Bomb) -> Iterator[str]:
    """The address of a server with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError, StopIteration):
                bomb(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """`python tests/security/bombs.py`: prints their addresses as JSON, and serves until its input ends."""
    with ExitStack() as all_of_them:
        bombs = {**BOMBS, UNPACKING: unpacking}
        addresses = {name: all_of_them.enter_context(serving(bomb)) for name, bomb in bombs.items()}
        print(json.dumps(addresses), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
