"""The KServe V2 protocol over HTTP with binary tensors, as Triton takes them, by tritonclient's own codec."""

import functools
import math
from urllib.parse import quote

import numpy as np
import orjson
from numpy.typing import NDArray
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from users.codecs.base import Answer, PreparedRequest, id_place
from users.codecs.v2 import V2Codec, absent, numbers_of, rows
from users.contract import Contract
from users.inputs.images import ImageSet

LONGEST_HEAD_BYTES = 1 << 16
IN_PATHS = "!$&'()*+,;=:@~"
"""What a part of a path may hold as it is (RFC 3986, 3.3): Triton does not decode all of it."""
HEADER_LENGTH = "Inference-Header-Content-Length"


class V2Http(V2Codec):
    """A JSON head, and raw tensors behind it: 602,112 bytes of a float32 picture [3, 224, 224]."""

    name, wire = "v2-binary", "http"

    @property
    def path(self) -> str:
        """The model's, and its version's if one is meant."""
        return f"{model_path(self.endpoint.model, self.endpoint.version)}/infer"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """The head says of each input how many bytes are its, or where they lie."""
        puts = self._referring(indices) if self.shared else self._holding(images, indices)
        contract = self.endpoint.contract
        outputs = [InferRequestedOutput(contract.output, binary_data=True)]
        made, json_size = InferenceServerClient.generate_request_body(
            puts, outputs=outputs, request_id=request_id
        )
        body, headers = bytes(made), {"Content-Type": "application/json"}
        if json_size is not None:  # there are bytes behind the head
            headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(json_size)}
        return PreparedRequest(body, indices, headers, id_place(body, request_id), contract.dimension)

    def _holding(self, images: ImageSet, indices: tuple[int, ...]) -> list[InferInput]:
        puts = []
        for one, tensor in self.tensors(images, indices):
            put = InferInput(one.name, list(tensor.shape), one.dtype)
            put.set_data_from_numpy(tensor, binary_data=True)
            puts.append(put)
        return puts

    def _referring(self, indices: tuple[int, ...]) -> list[InferInput]:
        assert self.shared is not None
        puts = []
        for one in self.endpoint.contract.inputs:
            place = self.shared.place(one, indices)
            put = InferInput(one.name, self.shape_of(one, indices), one.dtype)
            put.set_shared_memory(place.region, place.size, place.offset)
            puts.append(put)
        return puts

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """Float32 vectors are the answer's own bytes; but a server may answer in JSON."""
        contract, body = self.endpoint.contract, answer.body
        head_bytes = int(answer.headers.get(HEADER_LENGTH.lower(), len(body)))
        if head_bytes == len(body):
            return from_json(body, contract)
        if head_bytes > LONGEST_HEAD_BYTES:
            raise ValueError(f"a JSON head of {head_bytes:,} bytes")
        at, shape, numbers = place_of(bytes(body[:head_bytes]), contract.output)
        # A copy: numbers that begin at an odd address numpy would copy for each thing it does with them.
        return rows(np.ndarray(shape, numbers, body[head_bytes + at :]), shape, contract)

    def vectors_by_library(self, answer: Answer) -> NDArray[np.float32]:
        """By tritonclient's own parser."""
        contract = self.endpoint.contract
        length = int(answer.headers[HEADER_LENGTH.lower()])
        result = InferenceServerClient.parse_response_body(bytes(answer.body), header_length=length)
        found = np.asarray(result.as_numpy(contract.output))
        return rows(found, found.shape, contract)


def model_path(model: str, version: str = "") -> str:
    """The path of a model, or of one version of it, whatever characters its name has.

    >>> model_path("org/m@v2", "1")
    '/v2/models/org%2Fm@v2/versions/1'
    """
    return f"/v2/models/{quote(model, safe=IN_PATHS)}" + (f"/versions/{version}" if version else "")


@functools.lru_cache(maxsize=64)
def place_of(head: bytes, name: str) -> tuple[int, tuple[int, ...], type]:
    """Where behind a JSON head an output's bytes begin, their shape, and NumPy's type of them.

    A model's answers have the same head, answer for answer, but for the id of a request that is traced.
    Source: the KServe v2 protocol with Triton's binary tensor data extension.
    """
    at, outputs = 0, orjson.loads(head)["outputs"]
    for output in outputs:
        size = output.get("parameters", {}).get("binary_data_size", 0)
        if output["name"] == name:
            shape, numbers = tuple(output["shape"]), numbers_of(output["datatype"])
            if math.prod(shape) * np.dtype(numbers).itemsize != size:
                raise ValueError(f"a vector of shape {shape} in {size} bytes")
            return at, shape, numbers
        at += size
    raise absent(name, [one["name"] for one in outputs])


def from_json(body: bytes | bytearray, contract: Contract) -> NDArray[np.float32]:
    """An output of an answer that is JSON as a whole; an empty one of a Triton has no data."""
    outputs = orjson.loads(body)["outputs"]
    output = next((one for one in outputs if one["name"] == contract.output), None)
    if output is None:
        raise absent(contract.output, [one["name"] for one in outputs])
    return rows(np.array(output.get("data", ()), np.float32), output["shape"], contract)
