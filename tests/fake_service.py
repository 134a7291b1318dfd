"""A stand-in for the PyTorch service: the same words over real HTTP, an embedding made of the bytes' hash.

    python tests/fake_service.py PORT [--delay-ms 5] [--wrong-after N] [--die-after N] [--status 500]

It costs no compute, so tests of the generator measure the generator. Misbehaviour is asked for by option.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


def embedding(jpeg: bytes) -> list[float]:
    """512 floats of length 1, the same for the same bytes."""
    seed = int.from_bytes(hashlib.sha256(jpeg).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=512).astype(np.float32)
    return [float(value) for value in vector / np.linalg.norm(vector)]


class Service(ThreadingHTTPServer):
    """Counts what it served; `options` say how it misbehaves."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, options: argparse.Namespace) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.options = options
        self.lock = threading.Lock()
        self.requests = self.failures = self.images = 0
        self.compute_s = 0.0


class Handler(BaseHTTPRequestHandler):
    """POST /embed, GET /readyz, GET /metrics."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes; the second would wait 40 ms
    server: Service

    def do_GET(self) -> None:
        """Readiness and counters."""
        if self.path == "/metrics":
            self._send(200, self._metrics().encode(), {"Content-Type": "text/plain"})
        elif self.path == "/readyz":
            self._send(200, json.dumps({"status": "ready"}).encode(), {})
        else:
            self._send(404, b'{"detail": "not here"}', {})

    def do_POST(self) -> None:
        """Embed."""
        options = self.server.options
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests += 1
            number = self.server.requests
        if options.die_after and number > options.die_after:
            os._exit(9)
        time.sleep(options.delay_ms / 1000)
        if options.status_after and number > options.status_after:
            with self.server.lock:
                self.server.failures += 1
            self._send(500, b'{"detail": "planted"}', {})
            return
        rows = [embedding(base64.b64decode(image)) for image in body["images"]]
        if options.wrong_after and number > options.wrong_after:
            rows = [[*row[1:], row[0]] for row in rows]
        with self.server.lock:
            self.server.images += len(rows)
            self.server.compute_s += options.delay_ms / 1000
        reply = json.dumps({"embeddings": rows, "model": "fake", "dim": 512}).encode()
        timing = f"decode;dur=0, preprocess;dur=0, queue;dur=0, compute;dur={options.delay_ms}"
        self._send(200, reply, {"Content-Type": "application/json", "Server-Timing": timing})

    def _metrics(self) -> str:
        server = self.server
        lines = [f"inferswarm_requests_total {server.requests}", f"inferswarm_images_total {server.images}"]
        lines.append(f"inferswarm_failures_total {server.failures}")
        parts = {"decode": 0.0, "preprocess": 0.0, "queue": 0.0, "compute": server.compute_s}
        for part, seconds in parts.items():
            lines.append(f"# TYPE inferswarm_{part}_seconds summary")
            lines.append(f"inferswarm_{part}_seconds_sum {seconds}")
            lines.append(f"inferswarm_{part}_seconds_count {server.requests}")
        return "\n".join(lines) + "\n"

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--delay-ms", type=float, default=2)
    for option in ("--wrong-after", "--die-after", "--status-after"):
        parser.add_argument(option, type=int, default=0)
    options = parser.parse_args()
    Service(options.port, options).serve_forever()


if __name__ == "__main__":
    main()
