"""A server of embeddings of nobody's make: `python tests/toy_server.py PORT`.

POST /v1/vectors {"pictures": [base64, …]} → {"vectors": [[512 numbers], …]}, POST /replicas {"replicas": n},
GET /about, /counts and /metrics.
"""

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATE = {"replicas": 1, "asked": 0, "pictures": 0}
LOCK = threading.Lock()
COMPUTE_US = 2_000


def vector(picture: str) -> list[float]:
    """512 numbers of length 1, 1 at a place that the picture decides."""
    made = [0.0] * 512
    made[int.from_bytes(hashlib.sha256(picture.encode()).digest()[:2], "big") % 512] = 1.0
    return made


class Toy(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/metrics":
            return self.answer(b'toy_waiting{queue="all"} 3\n')
        return self.answer(json.dumps({"maker": "toy", "weights": "made up", **STATE}).encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/replicas":
            STATE["replicas"] = asked["replicas"]
            return self.answer(b"{}")
        with LOCK:
            STATE["asked"] += 1
            STATE["pictures"] += len(asked["pictures"])
        return self.answer(json.dumps({"vectors": [vector(one) for one in asked["pictures"]]}).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Compute-Us", str(COMPUTE_US))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Toy).serve_forever()
