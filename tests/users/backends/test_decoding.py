"""What users make of an answer's bytes: the numbers that the server sent, and nothing out of broken ones."""

import json
from typing import Any

import numpy as np
import pytest

from users.backends.embed_service import JpegHttp, rows_of
from users.endpoint import Endpoint
from users.errors import ErrorKind, kind_of
from users.transport.base import EMBEDDING_SIZE
from users.transport.http_response import HttpResponse
from users.codecs.v2_http import embeddings_of

RNG = np.random.default_rng(9)
ROWS = RNG.normal(size=(3, EMBEDDING_SIZE)).astype(np.float32)
OTHER = np.arange(7, dtype=np.int64)


def output(name: str, tensor: np.ndarray[Any, Any], datatype: str) -> dict[str, Any]:
    parameters = {"binary_data_size": tensor.nbytes}
    return {"name": name, "datatype": datatype, "shape": list(tensor.shape), "parameters": parameters}


def answer(*outputs: dict[str, Any], raw: bytes = b"") -> tuple[bytes, int]:
    head = json.dumps({"model_name": "m", "outputs": outputs}).encode()
    return head + raw, len(head)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_binary_tensor_is_found_behind_others(kind: type[bytes] | type[bytearray]) -> None:
    outputs = [output("other", OTHER, "INT64"), output("embedding", ROWS, "FP32")]
    body, head_bytes = answer(*outputs, raw=OTHER.tobytes() + ROWS.tobytes())
    found = embeddings_of(kind(body), head_bytes)
    assert found.dtype == np.float32
    assert np.array_equal(found, ROWS)


def test_numbers_in_json() -> None:
    told = {"name": "embedding", "datatype": "FP32", "shape": [3, 512], "data": ROWS.ravel().tolist()}
    found = embeddings_of(*answer(told))
    assert found.dtype == np.float32
    assert np.array_equal(found, ROWS)


@pytest.mark.parametrize(
    ("outputs", "raw"),
    [
        ([], b""),
        ([output("other", ROWS, "FP32")], ROWS.tobytes()),
        ([output("embedding", ROWS, "FP64")], ROWS.tobytes()),
        ([output("embedding", ROWS, "FP32")], ROWS.tobytes()[:-4]),
        ([{"name": "embedding", "datatype": "FP32", "shape": [3, 512]}], b""),
        ([{**output("embedding", ROWS, "FP32"), "shape": [4, 512]}], ROWS.tobytes()),
        ([{**output("embedding", ROWS, "FP32"), "shape": "many"}], ROWS.tobytes()),
        ([{**output("embedding", ROWS, "FP32"), "shape": [3, -1]}], ROWS.tobytes()),
        ([{**output("embedding", ROWS, "FP32"), "shape": [-3, -512]}], ROWS.tobytes()),
        ([{**output("embedding", ROWS, "FP32"), "shape": [3.0, 512]}], ROWS.tobytes()),
    ],
)
def test_what_is_no_embedding_is_a_bad_reply(outputs: list[dict[str, Any]], raw: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)) as caught:
        embeddings_of(*answer(*outputs, raw=raw))
    assert kind_of(caught.value) is ErrorKind.BAD_REPLY


def test_rows_are_rounded_as_numpy_rounds_them() -> None:
    rows = RNG.normal(size=(5, EMBEDDING_SIZE)).tolist()
    assert np.array_equal(rows_of(rows), np.array(rows, dtype=np.float32))


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[3e39] * EMBEDDING_SIZE], [[1] * EMBEDDING_SIZE]])
def test_other_rows_are_numpys_affair(rows: list[list[float]]) -> None:
    with np.errstate(over="ignore"):
        assert np.array_equal(rows_of(rows), np.array(rows, dtype=np.float32))


def test_no_rows_have_a_shape() -> None:
    assert rows_of([]).shape == (0, EMBEDDING_SIZE)


@pytest.mark.parametrize("rows", [[[1.0] * 512, [2.0]], [["a"] * 512], "no rows", [1.0, "b"]])
def test_what_are_no_rows_is_a_bad_reply(rows: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        rows_of(rows)
    assert kind_of(caught.value) is ErrorKind.BAD_REPLY


def test_both_clients_read_the_service_alike() -> None:
    endpoint = Endpoint("x", "pytorch", "http", "jpeg", "h:1")
    body = json.dumps({"embeddings": ROWS.tolist()}).encode()
    seen = [
        JpegHttp(endpoint, 1, by_library=by_library).embeddings(HttpResponse(200, {}, body, True, {}))
        for by_library in (False, True)
    ]
    assert all(np.array_equal(found, ROWS) for found in seen)
