"""The KServe V2 protocol over HTTP, numbers in JSON: for servers without binary tensors, and to compare."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import gevent
import numpy as np
from numpy.typing import NDArray
from tritonclient.http import InferenceServerClient

from users.codecs.base import Answer, PreparedRequest, id_place
from users.codecs.v2 import rows
from users.codecs.v2_http import V2Http, from_json
from users.contract import Input
from users.inputs.images import ImageSet

PIECE = 1 << 13
"""Numbers written in one go: about 5 ms. A batch of 32 takes seconds, and Locust's heartbeat must go on."""
YIELD_S = 1e-6
"""Not 0: gevent checks sockets and timers only after fifty greenlets that sleep for 0 s."""
HEADERS = {"Content-Type": "application/json"}
UNWRITABLE = ("FP16", "BF16")
"""Types without a JSON form that servers agree on."""


class V2Json(V2Http):
    """About 3 MB a picture on the wire: 150,528 numbers of about 20 characters, and JSON as the answer, too.

    The body is, byte for byte, what tritonclient.http makes with `binary_data=False`. It is made by NumPy's
    `tolist()` and `json.dumps`, as the published study did, since that takes about half as long as
    tritonclient's own loop over the numbers. One user's `encode` is that work alone; of several users in one
    process, whose work takes turns, it holds the others' turns, too.
    """

    name, takes_places = "v2-json", False

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """One JSON object, as large as the items have digits."""
        contract = self.endpoint.contract
        output = {"name": contract.output, "parameters": {"binary_data": False}}
        parts = [compact({"id": request_id})[:-1] + "," if request_id else "{", '"inputs":[']
        for at, (one, tensor) in enumerate(self.tensors(images, indices)):
            parts += ["," * bool(at), compact(head_of(one, tensor))[:-1], ',"data":[']
            parts += [",".join(pieces(tensor)), "]}"]
        parts.append(f'],"outputs":{compact([output])}}}')
        body = "".join(parts).encode()
        return PreparedRequest(body, indices, HEADERS, id_place(body, request_id), contract.dimension)

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """From the numbers in it."""
        contract = self.endpoint.contract
        return from_json(answer.body, contract)

    def vectors_by_library(self, answer: Answer) -> NDArray[np.float32]:
        """By tritonclient's own parser."""
        contract = self.endpoint.contract
        result = InferenceServerClient.parse_response_body(bytes(answer.body))
        found = np.asarray(result.as_numpy(contract.output))
        return rows(found, found.shape, contract)


def head_of(one: Input, tensor: NDArray[Any]) -> dict[str, Any]:
    """What an input's data stand behind. Raises ValueError."""
    if one.dtype in UNWRITABLE:
        raise ValueError(f"{one.dtype} has no JSON form; use gRPC")
    made = {"name": one.name, "shape": list(tensor.shape), "datatype": one.dtype}
    # MLServer's word: JSON has no bytes.
    return {**made, "parameters": {"content_type": "base64"}} if one.role == "jpeg" else made


def pieces(tensor: NDArray[Any], size: int = PIECE) -> Iterator[str]:
    """The numbers of a tensor as JSON writes them, some thousand at a time, and others' turn after each.

    >>> import numpy
    >>> list(pieces(numpy.array([[1.5, 2], [0, -1]]), 3))
    ['1.5,2.0,0.0', '-1.0']
    """
    flat = tensor.ravel()
    for first in range(0, flat.size, size):
        values = flat[first : first + size].tolist()
        yield compact(list(map(readable, values)) if flat.dtype == np.object_ else values)[1:-1]
        gevent.sleep(YIELD_S)


def readable(value: bytes) -> str:
    """A text as it is; of a file its base64."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def compact(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))
