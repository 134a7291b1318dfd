"""JSON tensors: the same bytes as tritonclient's own, and an answer in JSON."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from tests.pictures import jpegs
from tests.users.ways import codec_at
from users.codecs.v2_http import HEADER_LENGTH
from users.codecs.v2_json import PIECE, V2Json, pieces
from users.inputs.images import ImageSet

CODEC = codec_at(V2Json, model="openclip_vit_b32")
PIXELS = np.random.default_rng(0).standard_normal((3, 3, 224, 224), dtype=np.float32)
PIXELS[0, 0, 0, :5] = (1e-7, -0.0, 1e20, 0.1, 3)


class Numbers(ImageSet):
    """Tensors of all sorts of numbers, which no picture has."""

    def tensor(self, one: Any, contract: Any, indices: Sequence[int]) -> np.ndarray[Any, Any]:
        return PIXELS.take(indices, axis=0)


IMAGES = Numbers(jpegs(3), "test")


@pytest.mark.parametrize("request_id", ["", "0123456789abcdef"])
def test_the_body_is_byte_for_byte_tritonclients(request_id: str) -> None:
    prepared = CODEC.prepare(IMAGES, (2, 0), request_id)
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
        assert bytes(prepared.body[prepared.id_at :]).startswith(request_id.encode())
        assert json.loads(prepared.renamed("f" * 16).body)["id"] == "f" * 16
    else:
        assert prepared.id_at == -1


@pytest.mark.parametrize("size", [1, 4, 6, 7, PIECE])
def test_pieces_together_are_the_whole(size: int) -> None:
    tensor = np.array([[1.5, 2, 1e-7], [0, -1, 3e38]], dtype=np.float32)
    assert json.loads(f"[{','.join(pieces(tensor, size))}]") == tensor.ravel().tolist()
