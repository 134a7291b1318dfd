"""Triton over HTTP with the tensors as JSON numbers, as the seeds' first client sent them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import gevent
from numpy.typing import NDArray

from users.backends.payloads import TENSORS
from users.backends.triton_http import TritonHttp, headers_of
from users.endpoint import Endpoint, Payload
from users.inputs.images import ImageSet
from users.load.user import InferenceUser
from users.transport.base import Prepared, id_place

PIECE = 1 << 13
"""Numbers written at once: some 5 ms. A batch of 32 takes seconds, and Locust's heart must beat meanwhile."""
YIELD_S = 1e-6
"""Not 0: gevent looks at sockets and timers only after fifty greenlets that sleep for no time."""


class TritonJsonHttp(TritonHttp):
    """About 3 MB a picture on the wire: 150,528 numbers of some 20 characters, and JSON as the answer, too.

    The body is, byte for byte, what tritonclient.http makes with `binary_data=False`. It is made by NumPy's
    `tolist()` and `json.dumps`, as the seeds did, since that takes about half as long as tritonclient's own
    loop over the numbers. One user's `encode` is that work alone; of several users in one process, whose work
    takes turns, it holds the others' turns, too.
    """

    payload: ClassVar[Payload] = "json"
    binary: ClassVar[bool] = False

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> Prepared:
        """One JSON object, as large as the pictures have digits."""
        tensor = TENSORS[cls.payload](images, indices)
        name = {"id": request_id} if request_id else {}
        asked = {"inputs": [{"name": "input", "shape": list(tensor.shape), "datatype": "FP32", "data": []}]}
        output = {"outputs": [{"name": "embedding", "parameters": {"binary_data": False}}]}
        before, empty, after = compact({**name, **asked, **output}).partition('"data":[')
        body = "".join([before, empty, ",".join(pieces(tensor)), after]).encode()
        return Prepared(body, indices, headers_of(None), id_place(body, request_id))


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


class TritonJsonHttpUser(InferenceUser):
    """A user who sends float32 tensors as JSON numbers to Triton over HTTP."""

    abstract = True
    transport = TritonJsonHttp
