"""How a stand-in server is told to misbehave, and its journal of what became of each request; and what that
for the PyTorch service then does: one function a fault, each easily read.
"""

import json
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent import socket

GOOD, NO_FAULT = "good", ""
ENDLESS = 1 << 30
JSON = "application/json"
EMBEDDING = [1.0] + [0.0] * 511
TRICKLE_BYTES, TRICKLE_S = 8, 0.1
SLOW_READ_S = 30.0


class Commanded:
    """A stand-in's side: faults come by its standard input, its journal is a file that outlives it.

    A command is a line `{"fault": NAME, "count": N}`: the next N requests meet the fault. Each is confirmed
    by a line on the standard output. The process ends with its standard input.
    """

    def __init__(self, journal: str) -> None:
        self._file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._fault, self._left = NO_FAULT, 0

    def take(self) -> str:
        """The fault that the request at hand meets, or none."""
        with self._lock:
            if not self._left:
                return NO_FAULT
            self._left -= 1
            return self._fault

    def note(self, what: str) -> None:
        """What became of a request, a line: one write, which a kill does not halve."""
        os.write(self._file, f"{what}\n".encode())

    def listen(self) -> None:
        """Take commands in a thread until the standard input ends, and then end the process."""
        threading.Thread(target=self._obey, daemon=True).start()

    def _obey(self) -> None:
        print("ready", flush=True)
        for line in sys.stdin:
            told = json.loads(line)
            with self._lock:
                self._fault, self._left = told["fault"], told["count"]
            print("told", flush=True)
        os._exit(0)


Fault = Callable[[Any, int, bytes], bool]
"""Spoils one answer: takes the connection, the number of pictures, the right answer; whether it goes on."""


def response(body: bytes, headers: str = "", status: str = "200 OK", kind: str = JSON) -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answered(made: Callable[[int], bytes]) -> Fault:
    """An answer in due form, which depends on the number of pictures."""

    def fault(peer: Any, images: int, good: bytes) -> bool:
        peer.sendall(made(images))
        return True

    return fault


def with_status(status: str, headers: str = "") -> Fault:
    """One of another status."""
    return answered(lambda images: response(b'{"detail": "planted"}', headers, status))


def with_embeddings(made: Callable[[int], list[list[float]]]) -> Fault:
    """A 200 with other embeddings; NaN is written as Python's json writes it."""
    return answered(lambda images: response(json.dumps({"embeddings": made(images)}).encode()))


def not_http(peer: Any, images: int, good: bytes) -> bool:
    """What another protocol may say."""
    peer.sendall(b"\x15\x03\x03\x00\x02\x02\x50 this is no HTTP at all\r\n\r\n")
    return False


def half(peer: Any, images: int, good: bytes) -> bool:
    """Half of what the Content-Length says, and then the end."""
    peer.sendall(good[: len(good) // 2])
    return False


def reset(peer: Any, images: int, good: bytes) -> bool:
    """The connection is torn down: SO_LINGER of no time sends a RST."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def trickle(peer: Any, images: int, good: bytes) -> bool:
    """The right answer, a few bytes at a time, over minutes: ends when the client gives up."""
    for start in range(0, len(good), TRICKLE_BYTES):
        peer.sendall(good[start : start + TRICKLE_BYTES])
        gevent.sleep(TRICKLE_S)
    return True


def read_slowly(peer: Any) -> bool:
    """A body is read a byte at a time over a small window, until the client has given up."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    deadline = time.monotonic() + SLOW_READ_S
    while time.monotonic() < deadline and peer.recv(1):
        gevent.sleep(0.05)
    return False


FAULTS: dict[str, Fault] = {
    "not-http": not_http,
    "not-json": answered(lambda images: response(b'{"embeddings": [[0.1, 0.2,')),
    "binary": answered(lambda images: response(os.urandom(4096))),
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
SLOW_READERS: dict[str, Callable[[Any], bool]] = {"slow-read": read_slowly}
"""Faults that come before the request's body has."""
