"""What each way of sending puts on the wire."""

import base64
import json
from dataclasses import replace

import pytest
from tritonclient.grpc import InferInput, InferRequestedOutput
from tritonclient.grpc._utils import _get_inference_request
from tritonclient.grpc.service_pb2 import ModelInferRequest

from tests.pictures import image_set
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest, rotation
from users.codecs.embed import Embed
from users.codecs.server_timing import server_timing
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http

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
    prepared = type(CODEC)(replace(CODEC.endpoint, version="2")).prepare(IMAGES, (1, 2))
    tensor = InferInput("input", [2, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(TENSORS)
    outputs, sequence = [InferRequestedOutput("embedding")], (0, False, False)
    theirs = _get_inference_request(
        CODEC.endpoint.model, [tensor], "2", "", outputs, *sequence, 0, None, None
    )
    assert ModelInferRequest.FromString(prepared.body) == theirs


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("decode;dur=1.5", {"decode": 1_500_000}),
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


@pytest.mark.parametrize(
    ("items", "dimension", "most"),
    [(1, 0, 1_114_112), (1, 2_048, 1_114_112), (2, 4_096, 1_310_720), (32, 512, 3_145_728)],
)
def test_how_large_an_answer_may_be(items: int, dimension: int, most: int) -> None:
    """A mebibyte, and for each item 64 KiB, or 32 bytes for each of many numbers."""
    assert PreparedRequest(b"", (0,) * items, dimension=dimension).largest_reply == most
