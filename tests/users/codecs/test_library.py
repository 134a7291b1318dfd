"""Requests that are built from their pictures while they are measured: the same as those prepared before."""

from locust.env import Environment

import time

import numpy as np
import pytest

from tests.pictures import image_set
from tests.users.ways import codec_at
from users.codecs.base import Codec, PreparedRequest
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import V2Http
from users.errors import ErrorKind
from users.load import user as user_module
from users.load.assignment import Assignment
from users.load.user import InferenceUser
from users.transport.base import Reply, Transport

IMAGES = image_set(3)
EMBEDDING = [1.0, *[0.0] * 511]


def recording(monkeypatch: pytest.MonkeyPatch) -> tuple[type[InferenceUser], list[PreparedRequest]]:
    """A user's class, which notes requests and sends none, and what it noted."""
    sent: list[PreparedRequest] = []

    class Recording(Transport):
        def open(self) -> None:
            pass

        def exchange(self, prepared: PreparedRequest) -> Reply:
            sent.append(prepared)
            return Reply(np.array([EMBEDDING, EMBEDDING], dtype=np.float32), 0)

        def close(self) -> None:
            pass

    class RecordingUser(InferenceUser):
        pass

    monkeypatch.setattr(user_module, "client", Recording)
    return RecordingUser, sent


@pytest.mark.parametrize("form", [Embed, V2Http, V2Grpc])
def test_what_a_library_builds_is_as_prepared(form: type[Codec], monkeypatch: pytest.MonkeyPatch) -> None:
    user_class, sent = recording(monkeypatch)
    codec = codec_at(form)
    prepared = codec.prepare(IMAGES, (2, 0))
    user_class.assignment = Assignment(codec, [prepared], 20, images=IMAGES)
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(prepared, time.perf_counter_ns())
    assert result.ok
    assert 0 < result.phases_ns["encode"] <= result.service_ns
    assert sent == [prepared]
    assert sent[0] is not prepared


def test_a_request_that_cannot_be_built_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    user_class, sent = recording(monkeypatch)
    prepared = PreparedRequest(b"never sent", (3,))
    user_class.assignment = Assignment(codec_at(V2Http), [prepared], 20, images=IMAGES)  # no fourth
    user = user_class(Environment(user_classes=[user_class]))
    user.on_start()
    result = user.request(prepared, time.perf_counter_ns())
    assert result.error is not None
    assert result.error.kind is ErrorKind.OTHER
    assert result.phases_ns == {}
    assert sent == []
