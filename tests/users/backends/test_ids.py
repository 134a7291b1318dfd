"""Ids of requests: where they stand on the wire, and that no request without tracing has one."""

from locust.env import Environment

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from tritonclient.grpc.service_pb2 import ModelInferRequest

from tests.users.backends.test_library import IMAGES, recording
from tests.users.ways import sent_by
from users.backends.embed_service import JpegHttp
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.load.assignment import Assignment, prepare_pool
from users.transport.base import PLACEHOLDER, PreparedRequest, Transport
from users.codecs.v2_grpc import TritonGrpc
from users.codecs.v2_http import HEADER_LENGTH, TritonHttp

ID = "0123456789abcdef"


def prepared(transport: type[Transport], request_id: str) -> PreparedRequest:
    endpoint = Endpoint("x", "onnx", *sent_by(transport), "127.0.0.1:1", "a-model-0000")
    return transport.prepare(IMAGES, (2, 0), endpoint, request_id)


def id_of(request: PreparedRequest) -> str:
    """As the server reads it."""
    if HEADER_LENGTH in request.headers:
        head = json.loads(request.body[: int(request.headers[HEADER_LENGTH])])
        return str(head.get("id", ""))
    return str(ModelInferRequest.FromString(request.body).id)


@pytest.mark.parametrize("transport", [TritonHttp, TritonGrpc])
def test_a_renamed_request_equals_one_prepared_with_that_id(transport: type[Transport]) -> None:
    placed = prepared(transport, PLACEHOLDER)
    renamed = placed.renamed(ID)
    assert renamed == prepared(transport, ID)
    assert (id_of(placed), id_of(renamed)) == (PLACEHOLDER, ID)
    assert placed.body[placed.id_at : placed.id_at + 16].decode() == PLACEHOLDER


@pytest.mark.parametrize("transport", [TritonHttp, TritonGrpc])
def test_without_an_id_there_is_no_place_for_one(transport: type[Transport]) -> None:
    bare = prepared(transport, "")
    assert (bare.id_at, id_of(bare)) == (-1, "")
    assert len(bare.body) < len(prepared(transport, ID).body)


def test_the_services_requests_have_none() -> None:
    assert prepared(JpegHttp, ID) == prepared(JpegHttp, "")
    assert prepared(JpegHttp, ID).id_at == -1


@pytest.mark.parametrize("images", [None, IMAGES], ids=["prepared", "library"])
@pytest.mark.parametrize("transport", [TritonHttp, TritonGrpc])
def test_every_request_of_a_traced_pool_has_an_id_of_its_own(
    transport: type[Transport], images: ImageSet | None
) -> None:
    endpoint = Endpoint("x", "onnx", *sent_by(transport), "127.0.0.1:1", "m")
    user_class, recorded, sent = recording(transport)
    pool = prepare_pool(transport, IMAGES, 2, endpoint, PLACEHOLDER)
    assignment = Assignment(endpoint, recorded, pool, 20, images=images)
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


@pytest.mark.parametrize("transport", [JpegHttp, TritonHttp, TritonGrpc])
def test_an_untraced_request_is_sent_as_it_was_prepared(transport: type[Transport]) -> None:
    endpoint = Endpoint("x", "onnx", *sent_by(transport), "127.0.0.1:1", "m")
    user_class, recorded, sent = recording(transport)
    assignment = Assignment(endpoint, recorded, prepare_pool(transport, IMAGES, 2, endpoint), 20)
    user_class.assignment = assignment
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(assignment.pool[0], time.perf_counter_ns())
    assert sent[0] is assignment.pool[0]
    assert (result.request_id, result.phases_ns["encode"]) == ("", 0)


def test_two_stages_name_their_requests_apart() -> None:
    made = PreparedRequest(b"", (0,))
    endpoint = Endpoint("x", "onnx", "http", "fp32", "127.0.0.1:1", "m")
    one, other = (Assignment(endpoint, TritonHttp, [made], 20) for _ in range(2))
    assert len(one.new_id()) == len(PLACEHOLDER)
    assert one.token != other.token


def test_what_is_renamed_is_a_copy() -> None:
    made = PreparedRequest(b"id: 0000000000000000, and what follows", (1, 2), {"a": "b"}, id_at=4)
    assert made.renamed(ID) == replace(made, body=b"id: 0123456789abcdef, and what follows")
    assert np.array_equal(made.indices, (1, 2))
