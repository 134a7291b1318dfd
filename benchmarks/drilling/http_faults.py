"""What the stand-in for the PyTorch service does wrong on command: one function a fault, each easily read."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable

Fault = Callable[[socket.socket, int, bytes], bool]
"""Spoils one answer: takes the connection, the number of pictures, the right answer; whether it goes on."""
EMBEDDING = [1.0] + [0.0] * 511
TRICKLE_BYTES, TRICKLE_S = 8, 0.1
SLOW_READ_S = 30.0


def with_status(status: str, headers: str = "") -> Fault:
    """An answer of another status, in due form."""

    def fault(peer: socket.socket, images: int, good: bytes) -> bool:
        body = b'{"detail": "planted"}'
        head = (
            f"HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        )
        peer.sendall(head.encode() + b"\r\n" + body)
        return True

    return fault


def with_body(made: Callable[[int], bytes]) -> Fault:
    """A 200 with another body, which depends on the number of pictures."""

    def fault(peer: socket.socket, images: int, good: bytes) -> bool:
        body = made(images)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        peer.sendall(head.encode() + body)
        return True

    return fault


def with_embeddings(made: Callable[[int], list[list[float]]]) -> Fault:
    """A 200 with other embeddings; NaN is written as Python's json writes it."""
    return with_body(lambda images: json.dumps({"embeddings": made(images)}).encode())


def not_http(peer: socket.socket, images: int, good: bytes) -> bool:
    """What another protocol may say."""
    peer.sendall(b"\x15\x03\x03\x00\x02\x02\x50 this is no HTTP at all\r\n\r\n")
    return False


def half(peer: socket.socket, images: int, good: bytes) -> bool:
    """Half of what the Content-Length says, and then the end."""
    peer.sendall(good[: len(good) // 2])
    return False


def reset(peer: socket.socket, images: int, good: bytes) -> bool:
    """The connection is torn down: SO_LINGER of no time sends a RST."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def trickle(peer: socket.socket, images: int, good: bytes) -> bool:
    """The right answer, a few bytes at a time, over minutes: ends when the client gives up."""
    for start in range(0, len(good), TRICKLE_BYTES):
        peer.sendall(good[start : start + TRICKLE_BYTES])
        time.sleep(TRICKLE_S)
    return True


def read_slowly(peer: socket.socket) -> bool:
    """A body is read a byte at a time over a small window, until the client has given up."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    deadline = time.monotonic() + SLOW_READ_S
    while time.monotonic() < deadline and peer.recv(1):
        time.sleep(0.05)
    return False


FAULTS: dict[str, Fault] = {
    "not-http": not_http,
    "not-json": with_body(lambda images: b'{"embeddings": [[0.1, 0.2,'),
    "binary": with_body(lambda images: os.urandom(4096)),
    "half": half,
    "511": with_embeddings(lambda images: [EMBEDDING[:511]] * images),
    "batch": with_embeddings(lambda images: [EMBEDDING] * (images + 1)),
    "nan": with_embeddings(lambda images: [[float("nan")] * 512] * images),
    "500": with_status("500 Internal Server Error"),
    "503": with_status("503 Service Unavailable"),
    "429": with_status("429 Too Many Requests", "Retry-After: 1\r\n"),
    "reset": reset,
    "trickle": trickle,
}
SLOW_READERS: dict[str, Callable[[socket.socket], bool]] = {"slow-read": read_slowly}
"""Faults that come before the request's body has."""
