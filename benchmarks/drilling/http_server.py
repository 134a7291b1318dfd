"""A stand-in for the PyTorch service over plain sockets, so that every byte of a wrong answer can be chosen.

    python -m benchmarks.drilling.http_server JOURNAL PORT [--host 127.0.0.1] [--delay-ms 200]

Each connection has a thread. Every picture's embedding is the first unit vector.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time
from dataclasses import dataclass, field

from benchmarks.drilling.commanded import GOOD, NO_FAULT, Commanded
from benchmarks.drilling.http_faults import EMBEDDING, FAULTS, SLOW_READERS

JSON = "application/json"


@dataclass
class Counters:
    """What `/metrics` tells; a request counts when it has come whole, as in the service itself."""

    requests: int = 0
    failures: int = 0
    images: int = 0
    compute_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, images: int, failed: bool, compute_s: float) -> None:
        """One request more."""
        with self.lock:
            self.requests += 1
            self.failures += failed
            self.images += 0 if failed else images
            self.compute_s += 0 if failed else compute_s

    def page(self) -> bytes:
        """In Prometheus' text format."""
        seconds = {"decode": 0.0, "preprocess": 0.0, "queue": 0.0, "compute": self.compute_s}
        lines = [f"inferswarm_{part}_seconds_sum {spent}" for part, spent in seconds.items()]
        counted = {"requests": self.requests, "failures": self.failures, "images": self.images}
        lines += [f"inferswarm_{name}_total {count}" for name, count in counted.items()]
        return ("\n".join(lines) + "\n").encode()


class Service:
    """Answers `POST /embed`, `GET /readyz` and `GET /metrics`; only the first meets faults."""

    def __init__(self, commanded: Commanded, delay_s: float) -> None:
        self.commanded, self.delay_s, self.counters = commanded, delay_s, Counters()

    def converse(self, peer: socket.socket) -> None:
        """One connection, request after request, until either side ends it."""
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with peer:
            try:
                while head := read_head(peer):
                    if not self.answer(peer, *head):
                        return
            except OSError:
                return  # the client has gone

    def answer(self, peer: socket.socket, path: str, length: int) -> bool:
        """One request; whether the connection goes on."""
        if path != "/embed":
            page = self.counters.page() if path == "/metrics" else b'{"status": "ready"}'
            peer.sendall(response(page))
            return True
        fault = self.commanded.take()
        if fault in SLOW_READERS:
            self.commanded.note(fault)
            return SLOW_READERS[fault](peer)
        images = len(json.loads(read_body(peer, length))["images"])
        return self.embed(peer, images, fault)

    def embed(self, peer: socket.socket, images: int, fault: str) -> bool:
        """The embeddings after the delay, or what was commanded at once; noted once it has gone out."""
        good = response(
            answer_of(images), f"Server-Timing: queue;dur=0, compute;dur={1e3 * self.delay_s:g}\r\n"
        )
        self.counters.add(images, fault != NO_FAULT, self.delay_s)
        if fault == NO_FAULT:
            time.sleep(self.delay_s)
            peer.sendall(good)
            self.commanded.note(GOOD)
            return True
        self.commanded.note(fault)
        return FAULTS[fault](peer, images, good)


def answer_of(images: int) -> bytes:
    """The right body."""
    return json.dumps({"embeddings": [EMBEDDING] * images, "model": "stand-in", "dim": 512}).encode()


def response(body: bytes, headers: str = "", status: str = "200 OK") -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {JSON}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def read_head(peer: socket.socket) -> tuple[str, int] | None:
    """Path and length of the body, byte for byte so that none of the body is taken; None at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        got = peer.recv(1)
        if not got:
            return None
        head += got
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    return first.split(" ")[1], int(fields.get("content-length", 0))


def read_body(peer: socket.socket, length: int) -> bytes:
    """All of it. Raises ConnectionError where the client goes before."""
    body = bytearray()
    while len(body) < length:
        got = peer.recv(min(1 << 16, length - len(body)))
        if not got:
            raise ConnectionError("the client has gone")
        body += got
    return bytes(body)


def main() -> None:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=200)
    options = parser.parse_args()
    service = Service(Commanded(options.journal), options.delay_ms / 1_000)
    listener = socket.create_server((options.host, options.port), backlog=512)
    threading.Thread(target=accept, args=(listener, service), daemon=True).start()
    service.commanded.obey()


def accept(listener: socket.socket, service: Service) -> None:
    """A thread for each connection."""
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=service.converse, args=(peer,), daemon=True).start()


if __name__ == "__main__":
    main()
