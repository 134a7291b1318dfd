"""Asks a server once, as a worker or the master would, and tells what it came to.

    python tests/security/asking.py ADDRESS http|grpc prepared|library|control|serving

Prints the kind of the error, how long it took, and by how much this process has grown in the meantime.
"""

from __future__ import annotations

from locust import User  # noqa: F401 (patches first)

import json
import resource
import sys
import time

from swarm.query import PATIENCE_S, Line
from swarm.serving import read_serving
from users.endpoint import Endpoint
from users.errors import RequestError
from users.images import load_images
from users.jpeg_http import JpegHttp
from users.triton_grpc import TritonGrpc

TIMEOUT_S = 20.0


def grown_mb() -> float:
    """The most that this process has had in memory, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(address: str, protocol: str, how: str) -> None:
    """Print one JSON object."""
    images = load_images("")
    if protocol == "grpc":
        endpoint = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", address, "m")
        transport = TritonGrpc
    else:
        endpoint = Endpoint("pytorch-http", "pytorch", "http", "jpeg", address)
        transport = JpegHttp
    prepared = transport.prepare(images, (0,), endpoint)
    before_mb, began, kind = grown_mb(), time.monotonic(), "none"
    try:
        if how == "control":
            Line.to(endpoint, PATIENCE_S).get_json("/v2/models/m/config")
        elif how == "serving":
            read_serving(endpoint)
        else:
            with transport(endpoint, TIMEOUT_S, by_library=how == "library") as user:
                reply = user.send(prepared)
                kind = f"an answer of shape {reply.embeddings.shape}"
    except RequestError as error:
        kind = str(error.kind)
    print(json.dumps({"kind": kind, "s": time.monotonic() - began, "grown_mb": grown_mb() - before_mb}))


if __name__ == "__main__":
    main(*sys.argv[1:])
