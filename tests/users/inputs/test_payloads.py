"""What Triton's other payloads put on the wire, read back as Triton reads it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tritonclient.grpc.service_pb2 import ModelInferRequest
from tritonclient.utils import deserialize_bytes_tensor

from users.endpoint import Endpoint
from users.inputs.images import MEAN, STD, ImageSet, image_set, scale
from users.inputs.images import encode as jpeg_of
from users.transport.base import PLACEHOLDER
from users.codecs.v2_grpc import TritonGrpc, raw
from users.codecs.v2_http import TritonHttp

JPEG_HTTP = Endpoint("onnx-x-http", "onnx", "http", "jpeg", "host:1", "clip_x")
PIXELS_HTTP = replace(JPEG_HTTP, payload="uint8")
JPEG_GRPC = replace(JPEG_HTTP, name="onnx-x-grpc", protocol="grpc")
PIXELS_GRPC = replace(JPEG_GRPC, payload="uint8")
PICTURES = np.random.default_rng(5).integers(0, 256, (3, 240, 300, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return image_set([jpeg_of(Image.fromarray(picture), 90) for picture in PICTURES], "test")


def over_http(prepared) -> tuple[dict, bytes]:
    """The JSON head and what follows it."""
    end = int(prepared.headers["Inference-Header-Content-Length"])
    return json.loads(prepared.body[:end]), prepared.body[end:]


def test_pixels_are_what_the_tensors_are_scaled_from(images: ImageSet) -> None:
    assert images.pixels.shape == images.tensors.shape
    assert images.pixels.dtype == np.uint8
    np.testing.assert_array_equal(images.tensors, scale(images.pixels))
    by_hand = (images.pixels[1, :, 5, 7] / 255 - MEAN.ravel()) / STD.ravel()
    np.testing.assert_allclose(images.tensors[1, :, 5, 7], by_hand, atol=1e-6)


def test_files_over_http(images: ImageSet) -> None:
    head, tail = over_http(TritonHttp.prepare(images, (2, 0), JPEG_HTTP))
    (put,) = head["inputs"]
    size = sum(4 + len(images.jpegs[index]) for index in (2, 0))
    assert (put["name"], put["datatype"], put["shape"]) == ("input", "BYTES", [2, 1])
    assert put["parameters"] == {"binary_data_size": size}
    assert len(tail) == size
    assert int.from_bytes(tail[:4], "little") == len(images.jpegs[2])
    assert deserialize_bytes_tensor(tail).tolist() == [images.jpegs[2], images.jpegs[0]]


def test_pixels_over_http(images: ImageSet) -> None:
    head, tail = over_http(TritonHttp.prepare(images, (1, 2), PIXELS_HTTP))
    (put,) = head["inputs"]
    assert (put["datatype"], put["shape"]) == ("UINT8", [2, 3, 224, 224])
    assert tail == images.pixels[1:3].tobytes()
    assert len(tail) == 2 * 150_528


def test_files_over_grpc(images: ImageSet) -> None:
    prepared = TritonGrpc.prepare(images, (2, 0), JPEG_GRPC)
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
    prepared = TritonGrpc.prepare(images, (1, 2), PIXELS_GRPC)
    request = ModelInferRequest.FromString(prepared.body)
    (put,) = request.inputs
    assert (put.datatype, list(put.shape)) == ("UINT8", [2, 3, 224, 224])
    assert request.raw_input_contents[0] == images.pixels[1:3].tobytes()


@pytest.mark.parametrize("endpoint", [JPEG_HTTP, PIXELS_HTTP])
def test_a_request_gets_its_id_over_http(images: ImageSet, endpoint) -> None:
    prepared = TritonHttp.prepare(images, (0,), endpoint, PLACEHOLDER).renamed("0123456789abcdef")
    head, tail = over_http(prepared)
    assert head["id"] == "0123456789abcdef"
    assert tail == over_http(TritonHttp.prepare(images, (0,), endpoint))[1]


@pytest.mark.parametrize("endpoint", [JPEG_GRPC, PIXELS_GRPC])
def test_a_request_gets_its_id_over_grpc(images: ImageSet, endpoint) -> None:
    prepared = TritonGrpc.prepare(images, (0,), endpoint, PLACEHOLDER).renamed("0123456789abcdef")
    request = ModelInferRequest.FromString(prepared.body)
    assert request.id == "0123456789abcdef"
    plain = ModelInferRequest.FromString(TritonGrpc.prepare(images, (0,), endpoint).body)
    assert request.raw_input_contents == plain.raw_input_contents


def test_an_empty_file_is_a_length_of_nothing() -> None:
    images = ImageSet((b"", b"abc"), np.zeros((2, 3, 224, 224), np.float32), "test")
    column = images.batch("jpeg", (0, 1, 0))
    assert column.shape == (3, 1)
    assert raw(column) == b"\0\0\0\0" + b"\3\0\0\0abc" + b"\0\0\0\0"
