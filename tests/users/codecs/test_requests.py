"""What each way of sending puts on the wire."""

import base64
import json
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc import InferInput, InferRequestedOutput
from tritonclient.grpc._utils import _get_inference_request
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from tests.pictures import image_set
from tests.users.ways import codec_at
from users.codecs.base import rotation
from users.codecs.embed import Embed
from users.codecs.server_timing import server_timing
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.errors import ErrorKind, RequestError
from users.http2.call import GrpcAnswer

IMAGES = image_set(3)
CODEC = codec_at(V2Grpc, model="openclip_vit_b32")
CONTRACT = CODEC.endpoint.contract
TENSORS = IMAGES.tensor(CONTRACT.inputs[0], CONTRACT, (1, 2))


def test_jpeg() -> None:
    prepared = codec_at(Embed).prepare(IMAGES, (2, 0))
    sent = [base64.b64decode(image) for image in json.loads(prepared.body)["images"]]
    assert sent == [IMAGES.jpegs[2], IMAGES.jpegs[0]]


def test_triton_http_body_is_a_json_head_and_the_raw_tensor() -> None:
    prepared = codec_at(V2Http).prepare(IMAGES, (1, 2))
    head_bytes = int(prepared.headers[HEADER_LENGTH])
    head = json.loads(prepared.body[:head_bytes])
    assert head["inputs"][0]["shape"] == [2, 3, 224, 224]
    assert head["inputs"][0]["datatype"] == "FP32"
    assert prepared.body[head_bytes:] == TENSORS.tobytes()
    assert len(prepared.body) - head_bytes == 2 * 602_112


def test_triton_grpc_request_equals_tritonclients() -> None:
    prepared = CODEC.prepare(IMAGES, (1, 2))
    tensor = InferInput("input", [2, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(TENSORS)
    theirs = _get_inference_request(
        model_name=CODEC.endpoint.model,
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


def vectors(response: ModelInferResponse) -> np.ndarray[Any, Any]:
    return CODEC.vectors(GrpcAnswer(response.SerializeToString()))


def test_grpc_answer() -> None:
    response = ModelInferResponse()
    response.outputs.add(name="embedding", datatype="FP32", shape=(2, 512))
    response.raw_output_contents.append(np.arange(1024, dtype=np.float32).tobytes())
    assert vectors(response).shape == (2, 512)
    assert vectors(response)[1, 0] == 512


def test_grpc_answer_without_the_output() -> None:
    with pytest.raises(RequestError) as caught:
        vectors(ModelInferResponse())
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
