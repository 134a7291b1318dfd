"""A stand-in for the PyTorch service: the same words over real HTTP, an embedding made of the bytes' hash.

    python tests/fake_service.py PORT [--delay-ms 5] [--stall-s 2 --stall-every-s 20] [--wrong-after N] …

It costs next to no compute, so tests and benchmarks of the generator measure the generator. With
--token it answers none but those who send it; with --cert and --key it speaks TLS. Misbehaviour is asked for
by option, or with --journal FILE on command (tests/faults.py), which is why it writes every byte of its
answers itself. A stall begins at each whole multiple of its period on the wall clock.
"""

import argparse
import base64
import functools
import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import numpy as np
from gevent import socket
from gevent.event import Event
from gevent.server import StreamServer

from tests.faults import FAULTS, GOOD, NO_FAULT, SLOW_READERS, Commanded, response

PLANTED = "500 Planted"


@functools.cache
def embedding(image: str) -> str:
    """512 floats of length 1 as JSON, the same for the same base64 JPEG."""
    seed = int.from_bytes(hashlib.sha256(base64.b64decode(image)).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=512).astype(np.float32)
    # As many digits as a float32 has: longer numbers only cost the reader time.
    return json.dumps([round(float(value), 8) for value in vector / np.linalg.norm(vector)])


@functools.cache
def wrong_embedding(image: str) -> str:
    """The same, turned by one place."""
    first, *rest = json.loads(embedding(image))
    return json.dumps([*rest, first])


def stall_left_s(now_s: float, stall_s: float, every_s: float) -> float:
    """Seconds until the stall that is on at `now_s` ends, or 0: of 2 s every 20 s, 0.5 at 41.5 s."""
    return max(0, stall_s - now_s % every_s) if every_s else 0


def leaked(headers: dict[str, str]) -> bytes:
    """What no server should say: the token that it was sent, or would have taken, and every header."""
    token = headers.get("authorization", f"Bearer {os.environ.get('INFERSWARM_TOKEN')}")
    return json.dumps({"detail": f"who sent {token}?", **headers}).encode()


def read_head(lines: Any) -> tuple[str, dict[str, str]] | None:
    """Path and headers, names in small letters; None at the end. Raises ValueError for what is no HTTP."""
    line = lines.readline().decode("latin-1")
    if not line:
        return None
    _, path, protocol = line.split(" ")
    if not protocol.startswith("HTTP/1."):
        raise ValueError(protocol)
    pairs = iter(lambda: lines.readline().decode("latin-1").strip(), "")
    return path, {name.lower(): value for name, _, value in (pair.partition(": ") for pair in pairs)}


class Service:
    """POST /embed, GET /readyz, GET /metrics; counts what it served. Only /embed meets faults."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.commanded = options, Commanded(options.journal)
        self.requests = self.failures = self.images = 0
        self.compute_s = 0.0
        self.gate = Event()
        self.gate.set()
        if options.stall_every_s:
            gevent.spawn(self.stall)

    def stall(self) -> None:
        """Hold all answers back while a stall is on; then they go out in the order they were asked for."""
        while True:
            left_s = stall_left_s(time.time(), self.options.stall_s, self.options.stall_every_s)
            if left_s:
                self.gate.clear()
                gevent.sleep(left_s)
                self.gate.set()
            gevent.sleep(0.001)

    def converse(self, peer: Any, _: Any) -> None:
        """One connection, request after request, until either side ends it."""
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), peer.makefile("rb") as lines:
            try:
                while (head := read_head(lines)) and self.answer(peer, lines, *head):
                    pass
            except ValueError:
                peer.sendall(response(b"", status="400 Bad Request"))

    def answer(self, peer: Any, lines: Any, path: str, headers: dict[str, str]) -> bool:
        """One request; whether the connection goes on."""
        fault = self.commanded.take() if path == "/embed" else NO_FAULT
        if fault in SLOW_READERS:
            self.commanded.note(fault)
            return SLOW_READERS[fault](peer)
        body = lines.read(int(headers.get("content-length", 0)))
        if refused := self.refusal(headers):
            peer.sendall(refused)
        elif path == "/embed":
            return self.embed(peer, body, headers, fault)
        else:
            peer.sendall(self.page(path))
        return True

    def refusal(self, headers: dict[str, str]) -> bytes:
        """What one without the token gets, who is told imprudently what he came with; nothing for others."""
        came = headers.get("authorization", "")
        if not self.options.token or came == f"Bearer {self.options.token}":
            return b""
        body = json.dumps({"detail": f"not for {came}"}).encode()
        return response(body, "WWW-Authenticate: Bearer\r\n", "401 Unauthorized")

    def page(self, path: str) -> bytes:
        """The answer to all but pictures."""
        if path == "/metrics":
            return response(self.metrics().encode(), kind="text/plain")
        if path == "/readyz":
            return response(b'{"status": "ready"}')
        return response(b'{"detail": "not here"}', status="404 Not Found")

    def embed(self, peer: Any, body: bytes, headers: dict[str, str], fault: str) -> bool:
        """After the delay, the embeddings, or what was asked for instead; noted once it has gone out."""
        self.requests += 1
        if fault:
            self.failures += 1
            self.commanded.note(fault)
            images = json.loads(body)["images"]
            return FAULTS[fault](peer, len(images), self.embeddings(images))
        peer.sendall(self.embedded(body, headers))
        self.commanded.note(GOOD)
        return True

    def embedded(self, body: bytes, headers: dict[str, str]) -> bytes:
        """The answer that options ask for, when its time has come."""
        options, number = self.options, self.requests
        if options.leak_after and number > options.leak_after:
            return response(leaked(headers), status=PLANTED)
        if options.die_after and number > options.die_after:
            os._exit(9)
        gevent.sleep(options.delay_ms / 1000)
        self.gate.wait()
        if options.status_after and number > options.status_after:
            self.failures += 1
            return response(b'{"detail": "planted"}', status=PLANTED)
        images = json.loads(body)["images"]
        self.images += len(images)
        self.compute_s += options.delay_ms / 1000
        wrong = options.wrong_after and number > options.wrong_after
        return self.embeddings(images, wrong_embedding if wrong else embedding)

    def embeddings(self, images: list[str], make: Callable[[str], str] = embedding) -> bytes:
        """The right answer, or one with other embeddings."""
        reply = f'{{"embeddings": [{",".join(map(make, images))}], "model": "fake", "dim": 512}}'
        timing = f"decode;dur=0, preprocess;dur=0, queue;dur=0, compute;dur={self.options.delay_ms}"
        return response(reply.encode(), f"Server-Timing: {timing}\r\n")

    def metrics(self) -> str:
        """Counters in Prometheus' text format."""
        counts = {"requests": self.requests, "images": self.images, "failures": self.failures}
        lines = [f"inferswarm_{name}_total {count}" for name, count in counts.items()]
        parts = {"decode": 0.0, "preprocess": 0.0, "queue": 0.0, "compute": self.compute_s}
        for name, seconds in ((f"inferswarm_{part}_seconds", took) for part, took in parts.items()):
            lines += [f"# TYPE {name} summary", f"{name}_sum {seconds}", f"{name}_count {self.requests}"]
        return "\n".join(lines) + "\n"


def main() -> None:
    """Serve until killed, or with --journal until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=2)
    parser.add_argument("--journal", default=os.devnull)
    for option in ("--stall-s", "--stall-every-s"):
        parser.add_argument(option, type=float, default=0)
    for option in ("--wrong-after", "--die-after", "--status-after", "--leak-after"):
        parser.add_argument(option, type=int, default=0)
    for option in ("--token", "--cert", "--key"):
        parser.add_argument(option)
    options = parser.parse_args()
    tls = {"certfile": options.cert, "keyfile": options.key} if options.cert else {}
    service = Service(options)
    server = StreamServer((options.host, options.port), service.converse, backlog=512, **tls)
    server.init_socket()
    if options.journal != os.devnull:
        service.commanded.listen()
    server.serve_forever()


if __name__ == "__main__":
    main()
