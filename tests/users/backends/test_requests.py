"""What each way of sending puts on the wire."""

import base64
import json

import numpy as np
import pytest
from tritonclient.grpc import InferInput, InferRequestedOutput
from tritonclient.grpc._utils import _get_inference_request
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from users.backends.embed_service import JpegHttp, server_timing
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.inputs.images import ImageSet
from users.transport.base import rotation
from users.codecs.v2_grpc import TritonGrpc, embeddings_of
from users.codecs.v2_http import HEADER_LENGTH, TritonHttp

ENDPOINT = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "127.0.0.1:1", "openclip_vit_b32")
IMAGES = ImageSet(
    (b"one", b"two", b"three"), np.arange(3 * 3 * 224 * 224, dtype=np.float32).reshape(3, 3, 224, 224), "test"
)


def test_jpeg() -> None:
    prepared = JpegHttp.prepare(IMAGES, (2, 0), ENDPOINT)
    sent = [base64.b64decode(image) for image in json.loads(prepared.body)["images"]]
    assert sent == [b"three", b"one"]


def test_triton_http_body_is_a_json_head_and_the_raw_tensor() -> None:
    prepared = TritonHttp.prepare(IMAGES, (1, 2), ENDPOINT)
    head_bytes = int(prepared.headers[HEADER_LENGTH])
    head = json.loads(prepared.body[:head_bytes])
    assert head["inputs"][0]["shape"] == [2, 3, 224, 224]
    assert head["inputs"][0]["datatype"] == "FP32"
    assert prepared.body[head_bytes:] == IMAGES.tensors[1:3].tobytes()
    assert len(prepared.body) - head_bytes == 2 * 602_112


def test_triton_grpc_request_equals_tritonclients() -> None:
    prepared = TritonGrpc.prepare(IMAGES, (1, 2), ENDPOINT)
    tensor = InferInput("input", [2, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(IMAGES.tensors[1:3])
    theirs = _get_inference_request(
        model_name=ENDPOINT.model,
        inputs=[tensor],
        model_version="",
        request_id="",
        outputs=[InferRequestedOutput("embedding")],
        sequence_id=0,
        sequence_start=False,
        sequence_end=False,
        priority=0,
        timeout=None,
        parameters=None,
    )
    assert ModelInferRequest.FromString(prepared.body) == theirs


def test_grpc_answer() -> None:
    response = ModelInferResponse()
    response.outputs.add(name="embedding")
    response.raw_output_contents.append(np.arange(1024, dtype=np.float32).tobytes())
    assert embeddings_of(response).shape == (2, 512)
    assert embeddings_of(response)[1, 0] == 512


def test_grpc_answer_without_the_output() -> None:
    with pytest.raises(RequestError) as caught:
        embeddings_of(ModelInferResponse())
    assert caught.value.kind is ErrorKind.BAD_REPLY


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("decode;dur=1.5, compute;dur=40", {"decode": 1_500_000, "compute": 40_000_000}),
        ('queue;desc="waiting";dur=2', {}),
        ("nonsense", {}),
        ("", {}),
    ],
)
def test_server_timing(header: str, parts: dict[str, int]) -> None:
    assert server_timing({"server-timing": header}) == parts


def test_rotation_uses_every_picture() -> None:
    assert rotation(5, 2) == [(0, 1), (2, 3), (4, 0)]
    assert rotation(2, 5) == [(0, 1, 0, 1, 0)]
    assert {index for batch in rotation(64, 32) for index in batch} == set(range(64))
