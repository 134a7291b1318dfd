"""JSON tensors: the same bytes as tritonclient's own, and an answer in JSON."""

import json

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.codecs.v2_http import HEADER_LENGTH, PIECE, TritonJsonHttp, pieces

ENDPOINT = Endpoint("onnx-json-http", "onnx", "http", "json", "127.0.0.1:1", "openclip_vit_b32")
PIXELS = np.random.default_rng(0).standard_normal((3, 3, 224, 224), dtype=np.float32)
PIXELS[0, 0, 0, :5] = (1e-7, -0.0, 1e20, 0.1, 3)
IMAGES = ImageSet((b"one", b"two", b"three"), PIXELS, "test")


@pytest.mark.parametrize("request_id", ["", "0123456789abcdef"])
def test_the_body_is_byte_for_byte_tritonclients(request_id: str) -> None:
    prepared = TritonJsonHttp.prepare(IMAGES, (2, 0), ENDPOINT, request_id)
    tensor = InferInput("input", [2, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(PIXELS[[2, 0]], binary_data=False)
    outputs = [InferRequestedOutput("embedding", binary_data=False)]
    theirs, json_size = InferenceServerClient.generate_request_body(
        [tensor], outputs=outputs, request_id=request_id
    )
    assert json_size is None
    assert prepared.body == theirs
    assert HEADER_LENGTH not in prepared.headers
    if request_id:
        assert prepared.body[prepared.id_at :].startswith(request_id.encode())
        assert json.loads(prepared.renamed("f" * 16).body)["id"] == "f" * 16
    else:
        assert prepared.id_at == -1


def test_no_number_is_rounded() -> None:
    body = json.loads(TritonJsonHttp.prepare(IMAGES, (1,), ENDPOINT).body)
    sent = np.array(body["inputs"][0]["data"], dtype=np.float32).reshape(3, 224, 224)
    assert (sent == PIXELS[1]).all()


@pytest.mark.parametrize("size", [1, 4, 6, 7, PIECE])
def test_pieces_together_are_the_whole(size: int) -> None:
    tensor = np.array([[1.5, 2, 1e-7], [0, -1, 3e38]], dtype=np.float32)
    assert json.loads(f"[{','.join(pieces(tensor, size))}]") == tensor.ravel().tolist()
