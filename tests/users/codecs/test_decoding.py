"""What users make of an answer's bytes: the numbers that the server sent, and nothing out of broken ones."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.users.ways import codec_at
from users.codecs.embed import Embed, rows_of
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.contract import Contract
from users.errors import ErrorKind, RequestError, kind_of
from users.load.check import check_form
from users.transport.base import Reply
from users.transport.http_response import HttpResponse

CODEC = codec_at(V2Http)
EMBEDDING_SIZE = 512
RNG = np.random.default_rng(9)
ROWS = RNG.normal(size=(3, EMBEDDING_SIZE)).astype(np.float32)
OTHER = np.arange(7, dtype=np.int64)


def output(name: str, tensor: np.ndarray[Any, Any], datatype: str) -> dict[str, Any]:
    parameters = {"binary_data_size": tensor.nbytes}
    return {"name": name, "datatype": datatype, "shape": list(tensor.shape), "parameters": parameters}


def answer(*outputs: dict[str, Any], raw: bytes = b"") -> HttpResponse:
    head = json.dumps({"model_name": "m", "outputs": outputs}).encode()
    return HttpResponse(200, {HEADER_LENGTH.lower(): str(len(head))}, head + raw, True, {})


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_binary_tensor_is_found_behind_others(kind: type[bytes] | type[bytearray]) -> None:
    outputs = [output("other", OTHER, "INT64"), output("embedding", ROWS, "FP32")]
    told = answer(*outputs, raw=OTHER.tobytes() + ROWS.tobytes())
    found = CODEC.vectors(replace(told, body=kind(told.body)))
    assert found.dtype == np.float32
    assert np.array_equal(found, ROWS)


def test_numbers_in_json() -> None:
    told = {"name": "embedding", "datatype": "FP32", "shape": [3, 512], "data": ROWS.ravel().tolist()}
    for named in (answer(told), replace(answer(told), headers={})):
        found = CODEC.vectors(named)
        assert found.dtype == np.float32
        assert np.array_equal(found, ROWS)


@pytest.mark.parametrize(
    ("outputs", "raw"),
    [
        ([], b""),
        ([output("other", ROWS, "FP32")], ROWS.tobytes()),
        ([output("embedding", ROWS, "FP64")], ROWS.tobytes()),
        ([output("embedding", ROWS, "INT32")], ROWS.tobytes()),
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
        CODEC.vectors(answer(*outputs, raw=raw))
    assert kind_of(caught.value) is ErrorKind.BAD_REPLY


def test_rows_are_rounded_as_numpy_rounds_them() -> None:
    rows = RNG.normal(size=(5, EMBEDDING_SIZE)).tolist()
    assert np.array_equal(rows_of(rows), np.array(rows, dtype=np.float32))


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[3e39] * EMBEDDING_SIZE], [[1] * EMBEDDING_SIZE]])
def test_other_rows_are_numpys_affair(rows: list[list[float]]) -> None:
    with np.errstate(over="ignore"):
        assert np.array_equal(rows_of(rows), np.array(rows, dtype=np.float32))


@pytest.mark.parametrize("contract", [CODEC.endpoint.contract, Contract()])
def test_no_rows_are_a_bad_reply(contract: Contract) -> None:
    with pytest.raises(RequestError) as caught:
        check_form(Reply(rows_of([]), 0), 1, contract)
    assert caught.value.kind is ErrorKind.BAD_REPLY


@pytest.mark.parametrize("rows", [[[1.0] * 512, [2.0]], [["a"] * 512], "no rows", [1.0, "b"]])
def test_what_are_no_rows_is_a_bad_reply(rows: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        rows_of(rows)
    assert kind_of(caught.value) is ErrorKind.BAD_REPLY


def test_both_clients_read_the_service_alike() -> None:
    codec = codec_at(Embed)
    told = HttpResponse(200, {}, json.dumps({"embeddings": ROWS.tolist()}).encode(), True, {})
    for found in (codec.vectors(told), codec.vectors_by_library(told)):
        assert found.dtype == np.float32
        assert np.array_equal(found, ROWS)
