"""A stand-in for the PyTorch service: the same words over real HTTP, an embedding made of the bytes' hash.

    python tests/fake_service.py PORT [--delay-ms 5] [--stall-s 2 --stall-every-s 20] [--wrong-after N] …

It costs next to no compute, so tests and benchmarks of the generator measure the generator. With
--token it answers none but those who send it; with --cert and --key it speaks TLS. Misbehaviour is asked for
by option; a stall begins at each whole multiple of its period on the wall clock.
"""

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent
import numpy as np
from gevent.event import Event
from gevent.pywsgi import WSGIServer

Start = Callable[[str, list[tuple[str, str]]], Any]
JSON = "application/json"


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
    """Seconds until the stall that is on at `now_s` ends, or 0.

    >>> stall_left_s(41.5, 2, 20), stall_left_s(42.5, 2, 20)
    (0.5, 0)
    """
    return max(0, stall_s - now_s % every_s) if every_s else 0


def leaked(environ: dict[str, Any]) -> bytes:
    """What no server should say: the token that it was sent, or would have taken, and every header."""
    headers = {name: value for name, value in environ.items() if name.startswith("HTTP_")}
    token = environ.get("HTTP_AUTHORIZATION", f"Bearer {os.environ.get('INFERSWARM_TOKEN')}")
    return json.dumps({"detail": f"who sent {token}?", **headers}).encode()


class Service:
    """POST /embed, GET /readyz, GET /metrics; counts what it served."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
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

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """The WSGI application."""
        status, headers, body = self.refusal(environ) or self.answer(environ["PATH_INFO"], environ)
        start(status, [*headers.items(), ("Content-Length", str(len(body)))])
        return [body]

    def refusal(self, environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes] | None:
        """What one without the token gets, who is told imprudently what he came with; None for all others."""
        came = environ.get("HTTP_AUTHORIZATION", "")
        if not self.options.token or came == f"Bearer {self.options.token}":
            return None
        environ["wsgi.input"].read()
        body = json.dumps({"detail": f"not for {came}"}).encode()
        return "401 Unauthorized", {"Content-Type": JSON, "WWW-Authenticate": "Bearer"}, body

    def answer(self, path: str, environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
        """Status, headers, body."""
        if path == "/embed":
            self.requests += 1
            if self.options.leak_after and self.requests > self.options.leak_after:
                return "500 Planted", {"Content-Type": JSON}, leaked(environ)
            return self.embed(environ["wsgi.input"].read())
        if path == "/metrics":
            return "200 OK", {"Content-Type": "text/plain"}, self.metrics().encode()
        if path == "/readyz":
            return "200 OK", {"Content-Type": JSON}, b'{"status": "ready"}'
        return "404 Not Found", {"Content-Type": JSON}, b'{"detail": "not here"}'

    def embed(self, body: bytes) -> tuple[str, dict[str, str], bytes]:
        """After the delay, the embeddings, or what was asked for instead."""
        options, number = self.options, self.requests
        if options.die_after and number > options.die_after:
            os._exit(9)
        gevent.sleep(options.delay_ms / 1000)
        self.gate.wait()
        if options.status_after and number > options.status_after:
            self.failures += 1
            return "500 Planted", {"Content-Type": JSON}, b'{"detail": "planted"}'
        images = json.loads(body)["images"]
        make = wrong_embedding if options.wrong_after and number > options.wrong_after else embedding
        self.images += len(images)
        self.compute_s += options.delay_ms / 1000
        reply = f'{{"embeddings": [{",".join(map(make, images))}], "model": "fake", "dim": 512}}'
        timing = f"decode;dur=0, preprocess;dur=0, queue;dur=0, compute;dur={options.delay_ms}"
        return "200 OK", {"Content-Type": JSON, "Server-Timing": timing}, reply.encode()

    def metrics(self) -> str:
        """Counters in Prometheus' text format."""
        lines = [f"inferswarm_requests_total {self.requests}", f"inferswarm_images_total {self.images}"]
        lines.append(f"inferswarm_failures_total {self.failures}")
        parts = {"decode": 0.0, "preprocess": 0.0, "queue": 0.0, "compute": self.compute_s}
        for part, seconds in parts.items():
            lines.append(f"# TYPE inferswarm_{part}_seconds summary")
            lines.append(f"inferswarm_{part}_seconds_sum {seconds}")
            lines.append(f"inferswarm_{part}_seconds_count {self.requests}")
        return "\n".join(lines) + "\n"


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=2)
    for option in ("--stall-s", "--stall-every-s"):
        parser.add_argument(option, type=float, default=0)
    for option in ("--wrong-after", "--die-after", "--status-after", "--leak-after"):
        parser.add_argument(option, type=int, default=0)
    for option in ("--token", "--cert", "--key"):
        parser.add_argument(option)
    options = parser.parse_args()
    tls = {"certfile": options.cert, "keyfile": options.key} if options.cert else {}
    server = WSGIServer((options.host, options.port), Service(options), log=None, backlog=512, **tls)
    server.init_socket()
    # Connections inherit it: an answer is two writes, and the second must not wait for Nagle's algorithm.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.serve_forever()


if __name__ == "__main__":
    main()
