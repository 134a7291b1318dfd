"""A declared HTTP endpoint: its requests, the vectors of its answers, and the times it states."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from tests.pictures import jpegs
from users.codecs.declared.http import DeclaredHttp
from users.codecs.registry import codec_named
from users.codecs.server_timing import declared_times, server_timing
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.inputs.preparation import PRESETS
from users.transport.http_response import HttpResponse

IMAGES = ImageSet(jpegs(3), "test", texts=("first", "second"))
JPEG = Input("image", "BYTES", (1,), "jpeg")
PIXELS = Input("pixels", "FP32", (3, 8, 6), "picture", "NCHW")
SETTINGS = {
    "body": {"json": {"input": ["$jpeg_base64"]}},
    "answer": {"vectors": "data[].embedding", "order": "data[].index"},
}
ENDPOINT = Endpoint(
    *("mine", "service", "http", "jpeg", "127.0.0.1:1"),
    path="/v1/embeddings",
    codec="declared-http",
    contract=Contract((JPEG,), dimension=2),
    settings=SETTINGS,
)


def came(body: bytes = b"", headers: Mapping[str, str] = {}) -> HttpResponse:
    return HttpResponse(200, headers, body, True, {})


def codec(**settings: Any) -> DeclaredHttp:
    return DeclaredHttp(replace(ENDPOINT, settings={**SETTINGS, **settings}))


def test_a_request_has_its_pictures_in_order() -> None:
    made = DeclaredHttp(ENDPOINT)
    prepared = made.prepare(IMAGES, (2, 0), "f" * 16)
    sent = [base64.b64decode(text) for text in orjson.loads(prepared.body)["input"]]
    assert sent == [IMAGES.jpegs[2], IMAGES.jpegs[0]]
    assert made.path == "/v1/embeddings"
    assert (prepared.indices, prepared.id_at, prepared.dimension) == ((2, 0), -1, 2)
    length = len(prepared.body)
    assert prepared.head == f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


def test_the_content_type_of_a_user_stands_alone() -> None:
    endpoint = replace(ENDPOINT, headers=(("content-type", "application/x-image"),), path="")
    made = DeclaredHttp(replace(endpoint, settings={**SETTINGS, "body": {"raw": "$jpeg"}}))
    prepared = made.prepare(IMAGES, (1,))
    assert prepared.body == IMAGES.jpegs[1]
    assert prepared.head == f"Content-Length: {len(IMAGES.jpegs[1])}\r\n\r\n".encode()
    assert made.path == "/"


def test_texts_come_in_turn() -> None:
    body = codec(body={"json": ["$text"]}).prepare(IMAGES, (0, 1, 2)).body
    assert orjson.loads(body) == ["first", "second", "first"]


def test_pixels_are_prepared_as_declared() -> None:
    contract = Contract((JPEG, PIXELS), PRESETS["siglip"], max_batch=1)
    endpoint = replace(ENDPOINT, contract=contract, settings={**SETTINGS, "body": {"json": {"x": "$pixels"}}})
    sent = np.array(orjson.loads(DeclaredHttp(endpoint).prepare(IMAGES, (1,)).body)["x"], np.float32)
    assert np.array_equal(sent, IMAGES.tensor(PIXELS, contract, (1,))[0])
    assert sent.shape == (3, 8, 6)


def test_an_answer_is_read_in_its_order() -> None:
    body = b'{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}]}'
    found = DeclaredHttp(ENDPOINT).vectors(came(body))
    assert found.tolist() == [[1, 2], [3, 4]]
    assert found.dtype == np.float32


def test_which_statuses_are_answers() -> None:
    assert DeclaredHttp(ENDPOINT).success == {200}
    assert codec(answer={"vectors": ".", "success": [200, 201]}).success == {200, 201}


def test_the_dimension_divides_raw_numbers() -> None:
    made = codec(answer={"vectors": "", "encoding": "raw", "dtype": "float16"})
    body = np.array([1, 2, 3, 4], np.float16).tobytes()
    assert made.vectors(came(body, {"content-type": "application/octet-stream"})).tolist() == [[1, 2], [3, 4]]


def test_its_times_are_read_where_they_are_stated() -> None:
    timing = {"server-timing": "queue;dur=1.5, compute;dur=40, db;dur=3"}
    assert DeclaredHttp(ENDPOINT).server_ns(came(b"", timing)) == {"queue": 1_500_000, "compute": 40_000_000}
    assert DeclaredHttp(ENDPOINT).server_ns(came(b"")) == {}
    other = codec(times={"header": "X-Timing"})
    assert other.server_ns(came(b"", {"x-timing": "queue;dur=2"})) == {"queue": 2_000_000}
    assert other.server_ns(came(b"", timing)) == {}


def test_its_times_are_read_out_of_headers_of_its_own() -> None:
    told = {"X-Queue-Time": "queue ms", "x-infer": "compute us", "x-post": "compute s", "x-in": "input ns"}
    made = codec(times={"headers": told})
    headers = {"x-queue-time": "12", "x-infer": "1500.5", "x-post": "0.001", "x-in": "many"}
    assert made.server_ns(came(b"", headers)) == {"queue": 12_000_000, "compute": 1_500_500 + 1_000_000}
    assert made.server_ns(came(b"", {"server-timing": "queue;dur=2"})) == {}
    assert declared_times({}) is None
    assert server_timing({"x": "queue;dur=1"}, "x") == {"queue": 1_000_000}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"answer": None}, "answer.vectors: is missing; give the path of the vectors"),
        ({"body": {}}, "body: has none of them; give exactly one of json, multipart, msgpack, raw"),
        ({"body": {"json": ["$text"], "raw": "$jpeg"}}, "body: has json and raw; give exactly one of"),
        ({"answer": {"vectors": "a["}}, "answer.vectors: 'a[' is not a path"),
    ],
)
def test_settings_that_will_not_do(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        codec(**settings)
    assert str(caught.value).startswith(said)


def test_it_is_found_by_its_name_after_a_journey() -> None:
    """Workers get an endpoint as JSON."""
    endpoint = Endpoint.from_dict(json.loads(json.dumps(ENDPOINT.to_dict())))
    assert codec_named("declared-http") is DeclaredHttp
    assert DeclaredHttp(endpoint).prepare(IMAGES, (0,)) == DeclaredHttp(ENDPOINT).prepare(IMAGES, (0,))
