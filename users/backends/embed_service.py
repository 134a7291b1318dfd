"""The PyTorch service's way: base64 JPEG in JSON over HTTP, `POST /embed`."""

import base64
import json
import re
import struct
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import orjson
from numpy.typing import NDArray

from users.endpoint import Endpoint, Payload
from users.inputs.images import ImageSet
from users.transport.base import EMBEDDING_SIZE, PreparedRequest
from users.transport.http import HttpTransport
from users.transport.http_response import HttpResponse

HEADERS = {"Content-Type": "application/json"}
ROW = struct.Struct(f"{EMBEDDING_SIZE}f")
TIMING = re.compile(
    r"\b(decode|preprocess|queue|compute|upstream)\s*;\s*dur=([0-9]{1,9}(?:\.[0-9]{1,30})?)(?![\w.])"
)
"""The parts that a service states, as server/settings.py calls them; others have no place in a ledger."""


class JpegHttp(HttpTransport):
    """About 13 KB a picture on the wire: 10 KB of JPEG in base64."""

    payload: ClassVar[Payload] = "jpeg"
    names_model: ClassVar[bool] = False

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> PreparedRequest:
        """JSON `{"images": [base64, …]}`; no id, since the service states its parts with each answer."""
        encoded = [base64.b64encode(images.jpegs[index]).decode("ascii") for index in indices]
        return PreparedRequest(json.dumps({"images": encoded}).encode(), indices, HEADERS)

    @property
    def path(self) -> str:
        """Its null path answers without a model's work."""
        return "/embed" if self.endpoint.computes else "/null"

    def embeddings(self, answer: HttpResponse) -> NDArray[np.float32]:
        """float32 of shape [batch, 512]."""
        if self.by_library:
            return np.array(json.loads(answer.body)["embeddings"], dtype=np.float32)
        return rows_of(orjson.loads(answer.body)["embeddings"])

    def server_ns(self, answer: HttpResponse) -> Mapping[str, int]:
        """By its header `Server-Timing`."""
        return server_timing(answer.headers)


def rows_of(rows: list[list[float]]) -> NDArray[np.float32]:
    """Lists of numbers as float32, by struct where they are embeddings: a third of NumPy's time."""
    try:
        packed = b"".join([ROW.pack(*row) for row in rows])
    except (struct.error, OverflowError):
        return np.array(rows, dtype=np.float32)
    return np.frombuffer(packed, np.float32).reshape(-1, EMBEDDING_SIZE)


def server_timing(headers: Mapping[str, str]) -> dict[str, int]:
    """The parts of a `Server-Timing` header in nanoseconds; empty where there is none.

    >>> server_timing({"server-timing": "decode;dur=1.5, compute;dur=40"})
    {'decode': 1500000, 'compute': 40000000}
    """
    header = headers.get("server-timing", "")
    return {name: round(float(value) * 1e6) for name, value in TIMING.findall(header)}
