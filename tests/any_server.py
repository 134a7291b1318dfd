"""A server of several makes: `python tests/any_server.py PORT [--token TOKEN]`.

POST /v1/embeddings as OpenAI's dialects have it, rows with their `index`, the last one first; /one gives one
row whatever is sent, /wordy hides its vectors. Under /v2 it says of its models what a Triton would, and
embeds none: `siglip` has two outputs, `depth` takes a picture of four channels, `open` says no size, and
`plain` has max_batch_size 0. With a token, only those who send it as x-api-key are answered.
"""

import hashlib
import json
import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

DIMENSION = 24
PICTURE, DEEP, OPEN = [-1, 3, 384, 384], [-1, 4, 384, 384], [-1, 3, -1, -1]
MODELS = {"siglip": (PICTURE, 8), "depth": (DEEP, 8), "open": (OPEN, 8), "plain": (PICTURE, 0)}


def vector(text: str) -> list[float]:
    """Numbers of no certain length, the same for the same text."""
    draw = random.Random(hashlib.sha256(text.encode()).digest())
    return [round(draw.gauss(0, 3), 6) for _ in range(DIMENSION)]


def tensor(name: str, shape: list[int]) -> dict[str, Any]:
    """As metadata have it."""
    return {"name": name, "datatype": "FP32", "shape": shape}


def metadata(model: str) -> dict[str, Any]:
    """What a model takes and gives."""
    outputs = [tensor("image_embeds", [-1, 768])]
    if model == "siglip":
        outputs.append(tensor("pooled", [-1, 768]))
    return {
        "name": model, "versions": ["1"], "platform": "onnxruntime_onnx",
        "inputs": [tensor("pixel_values", MODELS[model][0])], "outputs": outputs,
    }  # fmt: skip


def rows(path: str, given: list[str]) -> Any:
    """The answer to some inputs."""
    data = [{"index": at, "embedding": vector(text)} for at, text in enumerate(given)]
    if path == "/one":
        return {"data": data[:1]}
    if path == "/wordy":
        return {"object": "list", "result": data}
    return {"object": "list", "data": data[::-1], "model": "any"}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    token: ClassVar[str] = ""

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if self.path == "/v2":
            return self.answer({"name": "triton", "extensions": ["binary_tensor_data", "statistics"]})
        if self.path == "/health":
            return self.answer({})
        if parts[:2] == ["v2", "models"] and parts[2] in MODELS:
            if parts[-1] == "config":
                return self.answer({"name": parts[2], "max_batch_size": MODELS[parts[2]][1]})
            return self.answer({} if parts[-1] == "ready" else metadata(parts[2]))
        return self.answer({"error": "nothing here"}, 404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.token and self.headers.get("x-api-key") != self.token:
            return self.answer({"error": f"who has {self.headers.get('x-api-key')}?"}, 401)
        return self.answer(rows(self.path, asked["input"]))

    def answer(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-infer-ms", "1.5")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    Handler.token = sys.argv[3] if "--token" in sys.argv else ""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
