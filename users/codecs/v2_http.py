"""Triton over HTTP: KServe v2 with binary tensors by tritonclient.http's own codec, or with JSON numbers."""

import functools
import json
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import gevent
import numpy as np
import orjson
from numpy.typing import NDArray
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import np_to_triton_dtype

from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.transport.base import PreparedRequest, id_place
from users.transport.http import HttpTransport
from users.transport.http_response import HttpResponse

FP32_BYTES = 4
LONGEST_HEAD_BYTES = 1 << 16
HEADER_LENGTH = "Inference-Header-Content-Length"
PIECE = 1 << 13
"""Numbers written at once: some 5 ms. A batch of 32 takes seconds, and Locust's heart must beat meanwhile."""
YIELD_S = 1e-6
"""Not 0: gevent looks at sockets and timers only after fifty greenlets that sleep for no time."""


class TritonHttp(HttpTransport):
    """The endpoint's payload as a tensor: of float32, [3, 224, 224], 602,112 bytes a picture on the wire."""

    binary: ClassVar[bool] = True
    """Whether tensors travel as bytes after the JSON head, or as numbers in it; both ways alike."""

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> PreparedRequest:
        """A JSON head, and the raw tensor after it."""
        tensor = images.batch(endpoint.payload, indices)
        put = InferInput("input", list(tensor.shape), np_to_triton_dtype(tensor.dtype))
        put.set_data_from_numpy(tensor, binary_data=cls.binary)
        outputs = [InferRequestedOutput("embedding", binary_data=cls.binary)]
        made, json_size = InferenceServerClient.generate_request_body(
            [put], outputs=outputs, request_id=request_id
        )
        body = bytes(made)
        return PreparedRequest(body, indices, headers_of(json_size), id_place(body, request_id))

    @property
    def path(self) -> str:
        """The model's."""
        return f"/v2/models/{self.endpoint.model}/infer"

    def embeddings(self, answer: HttpResponse) -> NDArray[np.float32]:
        """float32 of shape [batch, 512], the answer's own bytes where tensors are binary."""
        head_bytes = int(answer.headers[HEADER_LENGTH.lower()]) if self.binary else len(answer.body)
        if not self.by_library:
            return embeddings_of(answer.body, head_bytes)
        length = head_bytes if self.binary else None
        result = InferenceServerClient.parse_response_body(bytes(answer.body), header_length=length)
        return np.asarray(result.as_numpy("embedding"), dtype=np.float32)


def embeddings_of(body: bytes | bytearray, head_bytes: int) -> NDArray[np.float32]:
    """The output `embedding` of an answer with a JSON head so long: the bytes behind it, or numbers in it.

    Raises ValueError, KeyError, TypeError.
    """
    if head_bytes == len(body):
        output, _ = embedding_in(bytes(body))
        return np.array(output["data"], dtype=np.float32).reshape(output["shape"])
    if head_bytes > LONGEST_HEAD_BYTES:
        raise ValueError(f"a JSON head of {head_bytes:,} bytes")
    at, shape = place_of(bytes(body[:head_bytes]))
    # A copy, since numbers that begin at an odd address numpy would copy for each thing it does with them.
    return np.ndarray(shape, np.float32, body[head_bytes + at :])


@functools.lru_cache(maxsize=64)
def place_of(head: bytes) -> tuple[int, tuple[int, ...]]:
    """Where behind a JSON head the embedding's bytes begin, and their shape.

    A model's answers have the same head, answer for answer, but for the id of a request that is traced.
    Source: the KServe v2 protocol with Triton's binary tensor data extension.
    """
    output, at = embedding_in(head)
    shape, size = tuple(output["shape"]), output["parameters"]["binary_data_size"]
    if math.prod(shape) * FP32_BYTES != size:
        raise ValueError(f"an embedding of shape {shape} in {size} bytes")
    return at, shape


def embedding_in(head: bytes) -> tuple[dict[str, Any], int]:
    """What a JSON head says of the output `embedding`, and the bytes of outputs before it."""
    at = 0
    for output in orjson.loads(head)["outputs"]:
        if output["name"] == "embedding":
            if output["datatype"] != "FP32":
                raise ValueError(f"an embedding of {output['datatype']}")
            return output, at
        at += output.get("parameters", {}).get("binary_data_size", 0)
    raise KeyError("embedding")


def headers_of(json_size: int | None) -> dict[str, str]:
    """A body's own headers; `json_size`: the bytes before its raw tensors, None where all of it is JSON."""
    if json_size is None:
        return {"Content-Type": "application/json"}
    return {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(json_size)}


class TritonJsonHttp(TritonHttp):
    """About 3 MB a picture on the wire: 150,528 numbers of some 20 characters, and JSON as the answer, too.

    The body is, byte for byte, what tritonclient.http makes with `binary_data=False`. It is made by NumPy's
    `tolist()` and `json.dumps`, as the seeds did, since that takes about half as long as tritonclient's own
    loop over the numbers. One user's `encode` is that work alone; of several users in one process, whose work
    takes turns, it holds the others' turns, too.
    """

    binary: ClassVar[bool] = False

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> PreparedRequest:
        """One JSON object, as large as the pictures have digits."""
        tensor = images.batch(endpoint.payload, indices)
        name = {"id": request_id} if request_id else {}
        asked = {"inputs": [{"name": "input", "shape": list(tensor.shape), "datatype": "FP32", "data": []}]}
        output = {"outputs": [{"name": "embedding", "parameters": {"binary_data": False}}]}
        before, empty, after = compact({**name, **asked, **output}).partition('"data":[')
        body = "".join([before, empty, ",".join(pieces(tensor)), after]).encode()
        return PreparedRequest(body, indices, headers_of(None), id_place(body, request_id))


def pieces(tensor: NDArray[Any], size: int = PIECE) -> Iterator[str]:
    """The numbers of a tensor as JSON writes them, some thousand at a time, and others' turn after each.

    >>> import numpy
    >>> list(pieces(numpy.array([[1.5, 2], [0, -1]]), 3))
    ['1.5,2.0,0.0', '-1.0']
    """
    flat = tensor.ravel()
    for first in range(0, flat.size, size):
        yield compact(flat[first : first + size].tolist())[1:-1]
        gevent.sleep(YIELD_S)


def compact(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))
