"""Base64 JPEG in JSON, as the PyTorch service takes it: `POST /embed` with `{"images": [base64, …]}`."""

import base64
import functools
import json
import struct
from collections.abc import Mapping

import numpy as np
import orjson
from numpy.typing import NDArray

from users.codecs.base import Answer, Codec, PreparedRequest
from users.codecs.server_timing import server_timing
from users.inputs.images import ImageSet

HEADERS = {"Content-Type": "application/json"}


class Embed(Codec):
    """About 13 KB a picture on the wire: 10 KB of JPEG in base64."""

    name, wire = "embed", "http"

    @property
    def path(self) -> str:
        """Its null path answers without a model's work."""
        return "/null" if self.endpoint.floor_of else "/embed"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """It has no id, since the service states its parts with each answer."""
        encoded = [base64.b64encode(images.jpegs[index]).decode("ascii") for index in indices]
        body = json.dumps({"images": encoded}).encode()
        return PreparedRequest(body, indices, HEADERS, dimension=self.endpoint.contract.dimension)

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """From the rows of `embeddings`."""
        return rows_of(orjson.loads(answer.body)["embeddings"])

    def vectors_by_library(self, answer: Answer) -> NDArray[np.float32]:
        """By Python's own parser."""
        return np.array(json.loads(answer.body)["embeddings"], dtype=np.float32)

    def server_ns(self, answer: Answer) -> Mapping[str, int]:
        """By its header `Server-Timing`."""
        return server_timing(answer.headers)


def rows_of(rows: list[list[float]]) -> NDArray[np.float32]:
    """Lists of numbers as float32, by struct where they are of one length: a third of NumPy's time."""
    try:
        row = row_of(len(rows[0]))
        packed = b"".join([row.pack(*numbers) for numbers in rows])
    except (struct.error, OverflowError, LookupError, TypeError):
        return np.array(rows, dtype=np.float32)
    return np.frombuffer(packed, np.float32).reshape(len(rows), -1)


@functools.lru_cache(maxsize=8)
def row_of(dimension: int) -> struct.Struct:
    """So many numbers."""
    return struct.Struct(f"{dimension}f")
