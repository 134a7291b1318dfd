"""Asks servers once each, as a worker or the master would, and tells what each came to.

    python tests/security/asking.py prepared|library|control|grpc ADDRESS...

Prints JSON: for each address the kind of the error, how long it took, and by how much this process has grown.
"""

from locust import User  # noqa: F401 (patches first)

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from users.backends.registry import codec_of
from users.endpoint import Endpoint
from users.errors import RequestError
from users.inputs.images import load_images
from users.transport.admin_connection import PATIENCE_S, AdminConnection
from users.transport.transports import client

TIMEOUT_S = 20.0
OWN = Path("/proc/self")


def most_mb() -> float:
    """The most that this process has had in memory since `forget`, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (OWN / "status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def forget() -> None:
    """From here on counts what is now the most."""
    (OWN / "clear_refs").write_text("5")


def asked(how: str, address: str) -> str:
    """What a question came to."""
    if how == "grpc":
        endpoint = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", address, "m")
    else:
        endpoint = Endpoint("pytorch-http", "pytorch", "http", "jpeg", address)
    try:
        if how == "control":
            return type(AdminConnection.to(endpoint, PATIENCE_S).get_json("/v2/models/m/config")).__name__
        codec = codec_of(endpoint)
        with client(codec, TIMEOUT_S, by_library=how == "library") as user:
            reply = user.send(codec.prepare(IMAGES, (0,)))
            return f"an answer of shape {reply.embeddings.shape}"
    except RequestError as error:
        return str(error.kind)


def told(how: str, address: str) -> dict[str, Any]:
    """The same, measured."""
    forget()
    before_mb, began = most_mb(), time.monotonic()
    kind = asked(how, address)
    return {"kind": kind, "s": time.monotonic() - began, "grown_mb": most_mb() - before_mb}


if __name__ == "__main__":
    IMAGES = load_images("")
    print(json.dumps({address: told(sys.argv[1], address) for address in sys.argv[2:]}))
