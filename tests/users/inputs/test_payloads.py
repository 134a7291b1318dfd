"""What Triton's other payloads put on the wire, read back as Triton reads it."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tritonclient.grpc.service_pb2 import ModelInferRequest
from tritonclient.utils import deserialize_bytes_tensor

from users.codecs.base import PLACEHOLDER
from users.codecs.v2 import raw
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import V2Http
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.inputs.images import encode as jpeg_of
from users.inputs.preparation import CLIP, prepared

FILES = Contract((Input("input", "BYTES", (1,), "jpeg"),), output="embedding")
PIXELS = Contract((Input("input", "UINT8", (3, 224, 224), "picture", "NCHW"),), output="embedding")
JPEG_HTTP = Endpoint("onnx-x-http", "onnx", "http", "jpeg", "host:1", "clip_x", contract=FILES)
PIXELS_HTTP = replace(JPEG_HTTP, payload="uint8", contract=PIXELS)
JPEG_GRPC = replace(JPEG_HTTP, name="onnx-x-grpc", protocol="grpc")
PIXELS_GRPC = replace(JPEG_GRPC, payload="uint8", contract=PIXELS)
PICTURES = np.random.default_rng(5).integers(0, 256, (3, 240, 300, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return ImageSet(tuple(jpeg_of(Image.fromarray(picture), 90) for picture in PICTURES), "test")


def pixels_of(images: ImageSet, *indices: int) -> bytes:
    """The bytes of the pictures' squares."""
    pictures = [Image.open(io.BytesIO(images.jpegs[index])) for index in indices]
    return b"".join(prepared(picture, CLIP, 224, 224, "UINT8", "NCHW").tobytes() for picture in pictures)


def over_http(prepared) -> tuple[dict, bytes]:
    """The JSON head and what follows it."""
    end = int(prepared.headers["Inference-Header-Content-Length"])
    return json.loads(prepared.body[:end]), prepared.body[end:]


def test_files_over_http(images: ImageSet) -> None:
    head, tail = over_http(V2Http(JPEG_HTTP).prepare(images, (2, 0)))
    (put,) = head["inputs"]
    size = sum(4 + len(images.jpegs[index]) for index in (2, 0))
    assert (put["name"], put["datatype"], put["shape"]) == ("input", "BYTES", [2, 1])
    assert put["parameters"] == {"binary_data_size": size}
    assert len(tail) == size
    assert int.from_bytes(tail[:4], "little") == len(images.jpegs[2])
    assert deserialize_bytes_tensor(tail).tolist() == [images.jpegs[2], images.jpegs[0]]


def test_pixels_over_http(images: ImageSet) -> None:
    head, tail = over_http(V2Http(PIXELS_HTTP).prepare(images, (1, 2)))
    (put,) = head["inputs"]
    assert (put["datatype"], put["shape"]) == ("UINT8", [2, 3, 224, 224])
    assert tail == pixels_of(images, 1, 2)
    assert len(tail) == 2 * 150_528


def test_files_over_grpc(images: ImageSet) -> None:
    prepared = V2Grpc(JPEG_GRPC).prepare(images, (2, 0))
    request = ModelInferRequest.FromString(prepared.body)
    (put,) = request.inputs
    assert (request.model_name, put.name, put.datatype, list(put.shape)) == (
        "clip_x",
        "input",
        "BYTES",
        [2, 1],
    )
    found = deserialize_bytes_tensor(request.raw_input_contents[0]).tolist()
    assert found == [images.jpegs[2], images.jpegs[0]]


def test_pixels_over_grpc(images: ImageSet) -> None:
    prepared = V2Grpc(PIXELS_GRPC).prepare(images, (1, 2))
    request = ModelInferRequest.FromString(prepared.body)
    (put,) = request.inputs
    assert (put.datatype, list(put.shape)) == ("UINT8", [2, 3, 224, 224])
    assert request.raw_input_contents[0] == pixels_of(images, 1, 2)


@pytest.mark.parametrize("endpoint", [JPEG_HTTP, PIXELS_HTTP])
def test_a_request_gets_its_id_over_http(images: ImageSet, endpoint) -> None:
    prepared = V2Http(endpoint).prepare(images, (0,), PLACEHOLDER).renamed("0123456789abcdef")
    head, tail = over_http(prepared)
    assert head["id"] == "0123456789abcdef"
    assert tail == over_http(V2Http(endpoint).prepare(images, (0,)))[1]


@pytest.mark.parametrize("endpoint", [JPEG_GRPC, PIXELS_GRPC])
def test_a_request_gets_its_id_over_grpc(images: ImageSet, endpoint) -> None:
    prepared = V2Grpc(endpoint).prepare(images, (0,), PLACEHOLDER).renamed("0123456789abcdef")
    request = ModelInferRequest.FromString(prepared.body)
    assert request.id == "0123456789abcdef"
    plain = ModelInferRequest.FromString(V2Grpc(endpoint).prepare(images, (0,)).body)
    assert request.raw_input_contents == plain.raw_input_contents


def test_an_empty_file_is_a_length_of_nothing() -> None:
    images = ImageSet((b"", b"abc"), "test")
    column = images.tensor(FILES.inputs[0], FILES, (0, 1, 0))
    assert column.shape == (3, 1)
    assert raw(column) == b"\0\0\0\0" + b"\3\0\0\0abc" + b"\0\0\0\0"
