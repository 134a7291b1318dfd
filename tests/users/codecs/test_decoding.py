"""What users make of an answer's bytes: the numbers that the server sent, and nothing out of broken ones."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc.service_pb2 import ModelInferResponse

from tests.users.ways import codec_at
from users.codecs.base import Codec
from users.codecs.embed import Embed, rows_of
from users.codecs.v2 import FLOATS
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.codecs.v2_json import V2Json
from users.contract import Contract
from users.errors import ErrorKind, RequestError, kind_of, translated
from users.http2.call import GrpcAnswer
from users.load.check import check_form
from users.transport.base import Reply
from users.transport.http_response import HttpResponse

CODEC = codec_at(V2Http)
EMBEDDING_SIZE = 512
RNG = np.random.default_rng(9)
ROWS = RNG.normal(size=(3, EMBEDDING_SIZE)).astype(np.float32)
OTHER = np.arange(7, dtype=np.int64)
Outputs = list[tuple[str, np.ndarray[Any, Any], str]]


def output(name: str, tensor: np.ndarray[Any, Any], datatype: str) -> dict[str, Any]:
    parameters = {"binary_data_size": tensor.nbytes}
    return {"name": name, "datatype": datatype, "shape": list(tensor.shape), "parameters": parameters}


def answer(*outputs: dict[str, Any], raw: bytes = b"") -> HttpResponse:
    head = json.dumps({"model_name": "m", "outputs": outputs}).encode()
    return HttpResponse(200, {HEADER_LENGTH.lower(): str(len(head))}, head + raw, True, {})


def binary(outputs: Outputs) -> HttpResponse:
    raw = b"".join(tensor.tobytes() for _, tensor, _ in outputs)
    return answer(*(output(*one) for one in outputs), raw=raw)


def in_json(outputs: Outputs) -> HttpResponse:
    told = [
        {"name": name, "datatype": datatype, "shape": list(tensor.shape), "data": tensor.ravel().tolist()}
        for name, tensor, datatype in outputs
    ]
    return replace(answer(*told), headers={})


def over_grpc(outputs: Outputs, raw: bool = True) -> GrpcAnswer:
    """In raw bytes, as Triton answers, or in typed contents, as MLServer does."""
    response = ModelInferResponse()
    for name, tensor, datatype in outputs:
        made = response.outputs.add(name=name, datatype=datatype, shape=tensor.shape)
        if raw:
            response.raw_output_contents.append(tensor.tobytes())
        else:
            contents = {"FP64": made.contents.fp64_contents, "INT64": made.contents.int64_contents}
            contents.get(datatype, made.contents.fp32_contents).extend(tensor.ravel().tolist())
    return GrpcAnswer(response.SerializeToString())


def typed(outputs: Outputs) -> GrpcAnswer:
    return over_grpc(outputs, raw=False)


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("shape", [(3, 512), (3, 1, 512), (3, 512, 1, 1)])
@pytest.mark.parametrize(
    ("form", "told", "types"),
    [
        (V2Http, binary, FLOATS),
        (V2Http, in_json, FLOATS),
        (V2Json, in_json, FLOATS),
        (V2Grpc, over_grpc, FLOATS),
        (V2Grpc, typed, ("FP32", "FP64")),
    ],
)
def test_the_output_of_its_name_is_read(
    form: type[Codec], told: Callable[[Outputs], Any], types: Any, shape: Any, at: int
) -> None:
    codec = codec_at(form)
    single = form(replace(codec.endpoint, contract=replace(codec.endpoint.contract, batched=False)))
    for datatype in types:
        vector = ROWS.reshape(shape).astype(FLOATS[datatype])
        outputs = [("other", OTHER, "INT64"), ("tokens", ROWS[::-1] * 2, "FP32")]
        outputs.insert(at, ("embedding", vector, datatype))
        came = told(outputs)
        expected = vector.reshape(3, 512).astype(np.float32)
        for read in (codec.vectors, codec.vectors if told is in_json else codec.vectors_by_library):
            found = read(came)
            assert (found.shape, found.dtype) == ((3, 512), np.float32)
            assert np.array_equal(found, expected)
        with pytest.raises(RequestError, match="several vectors an item"):  # without a batch it is one
            single.vectors(came)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_body_may_still_be_where_it_was_received(kind: type[bytes] | type[bytearray]) -> None:
    told = binary([("other", np.zeros(3, np.uint8), "UINT8"), ("embedding", ROWS, "FP32")])
    assert np.array_equal(CODEC.vectors(replace(told, body=kind(told.body))), ROWS)


def test_numbers_in_json_behind_the_length_of_their_head() -> None:
    told = in_json([("embedding", ROWS, "FP32")])
    length = {HEADER_LENGTH.lower(): str(len(told.body))}
    assert np.array_equal(CODEC.vectors(replace(told, headers=length)), ROWS)
    with pytest.raises(ValueError, match="a JSON head of 70,000 bytes"):
        CODEC.vectors(replace(told, body=bytes(70_001), headers={HEADER_LENGTH.lower(): "70000"}))


@pytest.mark.parametrize("outputs", [[], [("other", ROWS, "FP32")], [("embedding", ROWS[:0], "FP32")]])
def test_a_grpc_answer_without_the_vector_is_a_bad_reply(outputs: Outputs) -> None:
    with pytest.raises(RequestError) as caught:
        codec_at(V2Grpc).vectors(typed(outputs))
    assert caught.value.kind is ErrorKind.BAD_REPLY


@pytest.mark.parametrize(
    ("outputs", "raw"),
    [
        ([], b""),
        ([output("other", ROWS, "FP32")], ROWS.tobytes()),
        ([output("embedding", ROWS, "FP64")], ROWS.tobytes()),
        ([output("embedding", ROWS, "INT32")], ROWS.tobytes()),
        ([output("embedding", ROWS, "FP32")], ROWS.tobytes()[:-4]),
        ([{"name": "embedding", "datatype": "FP32", "shape": [3, 512]}], b""),
        *(
            ([{**output("embedding", ROWS, "FP32"), "shape": shape}], ROWS.tobytes())
            for shape in ([4, 512], [2, 512], "many", [3, -1], [-3, -512], [3.0, 512])
        ),
    ],
)
def test_what_is_no_embedding_is_a_bad_reply(outputs: list[dict[str, Any]], raw: bytes) -> None:
    with pytest.raises(RequestError) as caught, translated():
        CODEC.vectors(answer(*outputs, raw=raw))
    assert caught.value.kind is ErrorKind.BAD_REPLY


EMPTY = [{"name": "embedding", "datatype": "FP32", "shape": [0]}]


@pytest.mark.parametrize(
    ("form", "came"),
    [
        (V2Http, answer(*EMPTY)),
        (V2Http, binary([("embedding", ROWS[:0], "FP32")])),
        (V2Http, in_json([("embedding", ROWS[:, :0], "FP32")])),
        (V2Json, in_json([("embedding", ROWS[:, :0], "FP32")])),
        (V2Grpc, over_grpc([("embedding", ROWS[:, :0], "FP32")])),
        (V2Grpc, typed([("embedding", ROWS[:, :0], "FP32")])),
    ],
)
def test_an_empty_output_is_called_so(form: type[Codec], came: Any) -> None:
    with pytest.raises(RequestError) as caught, translated():
        codec_at(form).vectors(came)
    assert caught.value.kind is ErrorKind.BAD_REPLY
    assert "output embedding is empty" in caught.value.detail


@pytest.mark.parametrize("told", [binary, in_json, over_grpc, typed])
@pytest.mark.parametrize("dimension", [0, 512])
def test_vectors_of_tokens_are_not_strung_together(told: Callable[[Outputs], Any], dimension: int) -> None:
    made = codec_at({binary: V2Http, in_json: V2Json}.get(told, V2Grpc))
    codec = type(made)(replace(made.endpoint, contract=replace(made.endpoint.contract, dimension=dimension)))
    for shape, items in (
        ((3, 1, 512), 3),
        ((3, 512, 1), 3),
        ((1, 3, 512), 0),
        ((3, 2, 256), 0),
    ):
        came = told([("embedding", ROWS.reshape(shape), "FP32")])
        if items:
            assert codec.vectors(came).shape == (items, 512)
            continue
        with pytest.raises(RequestError, match="several vectors an item"):
            codec.vectors(came)


@pytest.mark.parametrize(
    ("shape", "batched", "rows"), [([3], True, 3), ([3, 1], True, 3), ([], False, 1), ([1], False, 1)]
)
def test_single_numbers_are_rows_of_one(shape: list[int], batched: bool, rows: int) -> None:
    numbers = np.arange(rows, dtype=np.float32).reshape(shape)
    contract = Contract(output="score", batched=batched)
    for told, form in ((in_json, V2Json), (binary, V2Http), (over_grpc, V2Grpc)):
        endpoint = replace(codec_at(form).endpoint, contract=contract)
        assert form(endpoint).vectors(told([("score", numbers, "FP32")])).tolist() == [
            [at] for at in range(rows)
        ]


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
