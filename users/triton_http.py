"""Triton over HTTP: the KServe v2 protocol with Triton's binary tensors, by tritonclient.http's own codec."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import np_to_triton_dtype

from users.base import InferenceUser
from users.endpoint import Endpoint, Payload
from users.http_client import HttpTransport
from users.images import ImageSet
from users.tensors import TENSORS
from users.transport import Prepared, Reply, id_place

HEADER_LENGTH = "Inference-Header-Content-Length"


class TritonHttp(HttpTransport):
    """602,112 bytes a picture on the wire: float32 of shape [3, 224, 224]."""

    payload: ClassVar[Payload] = "fp32"
    binary: ClassVar[bool] = True
    """Whether tensors travel as bytes after the JSON head, or as numbers in it; both ways alike."""

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> Prepared:
        """A JSON head, and the raw tensor after it."""
        tensor = TENSORS[cls.payload](images, indices)
        put = InferInput("input", list(tensor.shape), np_to_triton_dtype(tensor.dtype))
        put.set_data_from_numpy(tensor, binary_data=cls.binary)
        outputs = [InferRequestedOutput("embedding", binary_data=cls.binary)]
        made, json_size = InferenceServerClient.generate_request_body(
            [put], outputs=outputs, request_id=request_id
        )
        body = bytes(made)
        return Prepared(body, indices, headers_of(json_size), id_place(body, request_id))

    def exchange(self, prepared: Prepared) -> Reply:
        """POST and parse."""
        assert self._connection is not None, "open() comes before send()"
        path = f"/v2/models/{self.endpoint.model}/infer"
        answer = self._connection.post(path, prepared.body, prepared.headers)
        received_ns = time.perf_counter_ns()
        head = answer.headers[HEADER_LENGTH.lower()] if self.binary else None
        result = InferenceServerClient.parse_response_body(answer.body, header_length=head and int(head))
        embeddings = np.asarray(result.as_numpy("embedding"), dtype=np.float32)
        decode_ns = time.perf_counter_ns() - received_ns
        return Reply(embeddings, len(answer.body), {**answer.phases_ns, "decode": decode_ns})


def headers_of(json_size: int | None) -> dict[str, str]:
    """A body's own headers; `json_size`: the bytes before its raw tensors, None where all of it is JSON."""
    if json_size is None:
        return {"Content-Type": "application/json"}
    return {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(json_size)}


class TritonHttpUser(InferenceUser):
    """A user who sends float32 tensors to Triton over HTTP."""

    abstract = True
    transport = TritonHttp
