"""What Triton's other payloads put on the wire, read back as Triton reads it."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tritonclient.grpc.service_pb2 import ModelInferRequest
from tritonclient.utils import deserialize_bytes_tensor

from users.codecs.v2 import raw
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import V2Http
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.inputs.pictures import encode as jpeg_of
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


def over_http(prepared) -> tuple[str, str, list[int], bytes]:
    """Name, type, shape and bytes of the one input of a request."""
    end = int(prepared.headers["Inference-Header-Content-Length"])
    (put,) = json.loads(prepared.body[:end])["inputs"]
    assert put["parameters"] == {"binary_data_size": len(prepared.body) - end}
    return put["name"], put["datatype"], put["shape"], bytes(prepared.body[end:])


def over_grpc(prepared) -> tuple[str, str, list[int], bytes]:
    """The same."""
    request = ModelInferRequest.FromString(prepared.body)
    (put,), (tensor,) = request.inputs, request.raw_input_contents
    assert request.model_name == "clip_x"
    return put.name, put.datatype, list(put.shape), tensor


def test_files(images: ImageSet) -> None:
    by_http, by_grpc = (codec.prepare(images, (2, 0)) for codec in (V2Http(JPEG_HTTP), V2Grpc(JPEG_GRPC)))
    for found in (over_http(by_http), over_grpc(by_grpc)):
        assert found[:3] == ("input", "BYTES", [2, 1])
        assert int.from_bytes(found[3][:4], "little") == len(images.jpegs[2])
        assert deserialize_bytes_tensor(found[3]).tolist() == [images.jpegs[2], images.jpegs[0]]


def test_pixels(images: ImageSet) -> None:
    expected = ("input", "UINT8", [2, 3, 224, 224], pixels_of(images, 1, 2))
    assert over_http(V2Http(PIXELS_HTTP).prepare(images, (1, 2))) == expected
    assert over_grpc(V2Grpc(PIXELS_GRPC).prepare(images, (1, 2))) == expected


def test_an_empty_file_is_a_length_of_nothing() -> None:
    images = ImageSet((b"", b"abc"), "test")
    column = images.tensor(FILES.inputs[0], FILES, (0, 1, 0))
    assert column.shape == (3, 1)
    assert raw(column) == b"\0\0\0\0" + b"\3\0\0\0abc" + b"\0\0\0\0"
