"""Ids of requests: where they stand on the wire, and that no request without tracing has one."""

from locust.env import Environment

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc.service_pb2 import ModelInferRequest

from tests.users.codecs.test_library import IMAGES, recording
from tests.users.ways import codec_at
from users.codecs.base import PLACEHOLDER, Codec, PreparedRequest
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.load.assignment import Assignment, prepare_pool

ID = "0123456789abcdef"


def prepared(form: type[Codec], request_id: str) -> PreparedRequest:
    return codec_at(form, model="a-model-0000").prepare(IMAGES, (2, 0), request_id)


def id_of(request: PreparedRequest) -> str:
    """As the server reads it."""
    if HEADER_LENGTH in request.headers:
        head = json.loads(request.body[: int(request.headers[HEADER_LENGTH])])
        return str(head.get("id", ""))
    return str(ModelInferRequest.FromString(request.body).id)


@pytest.mark.parametrize("form", [V2Http, V2Grpc])
def test_a_renamed_request_equals_one_prepared_with_that_id(form: type[Codec]) -> None:
    placed = prepared(form, PLACEHOLDER)
    renamed = placed.renamed(ID)
    assert renamed == prepared(form, ID)
    assert (id_of(placed), id_of(renamed)) == (PLACEHOLDER, ID)
    assert bytes(placed.body[placed.id_at : placed.id_at + 16]).decode() == PLACEHOLDER


@pytest.mark.parametrize("form", [V2Http, V2Grpc])
def test_without_an_id_there_is_no_place_for_one(form: type[Codec]) -> None:
    bare = prepared(form, "")
    assert (bare.id_at, id_of(bare)) == (-1, "")
    assert len(bare.body) < len(prepared(form, ID).body)


def test_the_services_requests_have_none() -> None:
    assert prepared(Embed, ID) == prepared(Embed, "")
    assert prepared(Embed, ID).id_at == -1


@pytest.mark.parametrize("images", [None, IMAGES], ids=["prepared", "library"])
@pytest.mark.parametrize("form", [V2Http, V2Grpc])
def test_traced_requests_have_ids(form: type[Codec], images: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = codec_at(form)
    user_class, sent = recording(monkeypatch)
    assignment = Assignment(codec, prepare_pool(codec, IMAGES, 2, PLACEHOLDER), 20, images=images)
    user_class.assignment = assignment
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    results = [user.request(assignment.pool[0], time.perf_counter_ns()) for _ in range(3)]
    assert [result.ok for result in results] == [True] * 3
    ids = [result.request_id for result in results]
    assert ids == [f"{assignment.token:08x}{number:08x}" for number in range(3)]
    assert [id_of(request) for request in sent] == ids
    assert all(result.phases_ns["encode"] > 0 for result in results)
    assert all(result.request_bytes == len(assignment.pool[0].body) for result in results)


@pytest.mark.parametrize("form", [Embed, V2Http, V2Grpc])
def test_an_untraced_request_is_sent_as_prepared(form: type[Codec], monkeypatch: pytest.MonkeyPatch) -> None:
    codec = codec_at(form)
    user_class, sent = recording(monkeypatch)
    assignment = Assignment(codec, prepare_pool(codec, IMAGES, 2), 20)
    user_class.assignment = assignment
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(assignment.pool[0], time.perf_counter_ns())
    assert sent[0] is assignment.pool[0]
    assert (result.request_id, result.phases_ns["encode"]) == ("", 0)


def test_what_is_renamed_is_a_copy() -> None:
    made = PreparedRequest(b"id: 0000000000000000, and what follows", (1, 2), {"a": "b"}, id_at=4)
    assert made.renamed(ID) == replace(made, body=b"id: 0123456789abcdef, and what follows")
    assert np.array_equal(made.indices, (1, 2))
