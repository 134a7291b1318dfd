"""Requests that are built from their pictures while they are measured: the same as those prepared before."""

from __future__ import annotations

from locust.env import Environment

import time

import numpy as np
import pytest

from tests.users.ways import sent_by
from users.backends.embed_service import JpegHttp
from users.endpoint import Endpoint
from users.errors import ErrorKind
from users.inputs.images import ImageSet
from users.load.assignment import Assignment
from users.load.user import InferenceUser
from users.transport.base import PreparedRequest, Reply, Transport
from users.codecs.v2_grpc import TritonGrpc
from users.codecs.v2_http import TritonHttp

IMAGES = ImageSet(
    (b"one", b"two", b"three"), np.arange(3 * 3 * 224 * 224, dtype=np.float32).reshape(3, 3, 224, 224), "test"
)
EMBEDDING = [1.0, *[0.0] * 511]


def recording(
    transport: type[Transport],
) -> tuple[type[InferenceUser], type[Transport], list[PreparedRequest]]:
    """A user's class, this way of sending, which notes requests and sends none, and what it noted."""
    sent: list[PreparedRequest] = []

    class Recording(transport):  # type: ignore[misc, valid-type]
        def open(self) -> None:
            pass

        def exchange(self, prepared: PreparedRequest) -> Reply:
            sent.append(prepared)
            return Reply(np.array([EMBEDDING, EMBEDDING], dtype=np.float32), 0)

    class RecordingUser(InferenceUser):
        pass

    return RecordingUser, Recording, sent


@pytest.mark.parametrize("transport", [JpegHttp, TritonHttp, TritonGrpc])
def test_what_a_library_builds_equals_what_was_prepared(transport: type[Transport]) -> None:
    user_class, recorded, sent = recording(transport)
    endpoint = Endpoint("x", "onnx", *sent_by(transport), "127.0.0.1:1", "m")
    prepared = transport.prepare(IMAGES, (2, 0), endpoint)
    user_class.assignment = Assignment(endpoint, recorded, [prepared], 20, images=IMAGES)
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(prepared, time.perf_counter_ns())
    assert result.ok
    assert result.phases_ns["encode"] > 0
    assert sent == [prepared]
    assert sent[0] is not prepared


def test_a_request_that_cannot_be_built_has_failed() -> None:
    user_class, recorded, sent = recording(TritonHttp)
    endpoint = Endpoint("x", "onnx", "http", "fp32", "127.0.0.1:1", "m")
    prepared = PreparedRequest(b"never sent", (3,))
    user_class.assignment = Assignment(endpoint, recorded, [prepared], 20, images=IMAGES)  # no fourth
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(prepared, time.perf_counter_ns())
    assert result.error is not None
    assert result.error.kind is ErrorKind.OTHER
    assert result.phases_ns == {}
    assert sent == []
