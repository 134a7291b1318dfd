"""A gateway whose upstream is not there yet, is another, or fails: all of it but a real Triton."""

import json
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from tritonclient.grpc.service_pb2 import ModelConfigResponse, ModelInferResponse, ModelReadyResponse

from server.errors import NotYet, Refusal, SetUpError
from server.models.triton_upstream import OPTIONS, GatewayEmbedder
from server.service.command import embedder_of
from server.settings import Settings

SETTINGS = Settings(upstream="127.0.0.1:1", upstream_model="clip")
PIXELS = np.arange(2 * 3 * 224 * 224, dtype=np.float32).reshape(2, 3, 224, 224)


class Failure(grpc.RpcError):
    """What a call raises."""

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "connection\nlost"


def config(dim=512, **parameters):
    """A model's configuration as Triton tells it."""
    answer = ModelConfigResponse()
    answer.config.input.add(name="input", dims=[3, 224, 224])
    answer.config.output.add(name="embedding", dims=[dim])
    for key, value in parameters.items():
        answer.config.parameters[key].string_value = value
    return answer


CONFIG = config()


def infer(request, timeout):
    """Answers with the first pixel of each image."""
    (put,) = request.inputs
    pixels = np.frombuffer(request.raw_input_contents[0], np.float32).reshape(put.shape)
    first = np.repeat(pixels[:, 0, 0, :1], 512, axis=1)
    return ModelInferResponse(raw_output_contents=[first.tobytes()])


def gateway(ready=True, config=CONFIG, infer=infer):
    """A gateway before a stand-in for Triton's gRPC."""
    made = embedder_of(SETTINGS)
    assert isinstance(made, GatewayEmbedder)
    made._stub = SimpleNamespace(
        ModelReady=lambda request, timeout: ModelReadyResponse(ready=ready),
        ModelConfig=lambda request, timeout: config,
        ModelInfer=infer,
    )
    return made


def failing(request, timeout):
    raise Failure


def nothing(request, timeout):
    return ModelInferResponse()


FAILED = "the upstream 127.0.0.1:1 failed (unavailable): connection lost"
UNLIKE = (
    "the upstream's model clip does not turn `input` of 3 x 224 x 224 into `embedding` of 512: "
    "name one that does in INFERSWARM_UPSTREAM_MODEL."
)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"model": "ViT", "weights": "random", "weights_sha256": "88"}, ("ViT", "random", "88")),
        ({}, ("clip", "unknown", "")),
        ({"emulated": "1 ms"}, ("clip", "none (emulated)", "")),
    ],
)
def test_it_says_what_its_upstream_holds(given, told):
    made = gateway(config=config(**given))
    made.load()
    assert (made.model, made.weights, made.weights_sha256) == told


def test_images_keep_their_order():
    assert gateway().embed(PIXELS)[:, 511].tolist() == [0, 150_528]


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"ready": False}, NotYet, "the upstream 127.0.0.1:1 has no model clip that is ready"),
        ({"infer": failing}, NotYet, FAILED),
        ({"config": config(dim=768)}, SetUpError, UNLIKE),
    ],
)
def test_an_upstream_that_will_not_do(changes, error, sentence):
    with pytest.raises(error) as caught:
        gateway(**changes).load()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(failing, FAILED), (nothing, "the upstream 127.0.0.1:1 did not return 512 numbers per image")],
)
def test_a_call_that_fails_is_the_upstreams_fault(answer, sentence):
    with pytest.raises(Refusal) as caught:
        gateway(infer=answer).embed(PIXELS)
    assert (caught.value.status, caught.value.detail) == (502, sentence)


def test_an_upstream_that_is_back_is_found_within_a_second():
    """gRPC's own pauses between two tries to connect would grow to two minutes."""
    pauses = [dict(OPTIONS)[f"grpc.{kind}_reconnect_backoff_ms"] for kind in ("initial", "min", "max")]
    assert 0 < min(pauses) <= max(pauses) <= 1000


def test_not_ready_until_its_upstream_is_there(serving, until):
    """Nobody listens at port 1, and then there is a Triton."""
    embedder = GatewayEmbedder(SETTINGS)
    embedder.gate = embedder.load_gate = SimpleNamespace(set=lambda: None)
    with serving(embedder, SETTINGS, ready=False) as client:
        until(lambda: b"upstream 127.0.0.1:1 does not" in client.request("GET", "/readyz")[2])
        status, _, body = client.request("GET", "/readyz")
        assert (status, json.loads(body)["status"]) == (503, "loading")
        detail = "the upstream 127.0.0.1:1 does not answer (unavailable)"
        assert json.loads(body)["detail"] == detail
        status, _, reply = client.embed([(1, 1, 1)])
        assert (status, reply["detail"]) == (503, f"{detail}: try again when GET /readyz answers 200")
        embedder._stub = gateway()._stub
        until(lambda: client.request("GET", "/readyz")[0] == 200)
        told = json.loads(client.request("GET", "/readyz")[2])
        assert (told["gateway"], told["upstream"]) == (True, {"address": "127.0.0.1:1", "model": "clip"})
        assert not {"instances", "load_s"} & set(told)
        status, headers, reply = client.embed([(255, 255, 255)])
        assert (status, reply["dim"]) == (200, 512)
        parts = [part.split(";")[0] for part in headers["Server-Timing"].split(", ")]
        assert parts == ["decode", "preprocess", "queue", "upstream"]
        assert client.metric("inferswarm_upstream_seconds_count") == 1
        assert b"inferswarm_compute_seconds" not in client.request("GET", "/metrics")[2]
        assert json.loads(client.request("POST", "/null", client.body([(1, 2, 3)]))[2])["model"] == "null"
