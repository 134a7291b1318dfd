"""The sentences for targets that lack something."""

from typing import Any

import pytest

from users.backends.embed_service import check_role
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import TargetError
from users.triton.api import missing_model

ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "clip")


def preset(backend: str, protocol: Any, model: str, payload: Any = "fp32") -> Endpoint:
    return Endpoint("x", backend, protocol, payload, "gpu:8021", model)


TENSORS = "triton_repo/tensors.py into its folder 1"
BEFORE = "copy normalise_uint8 and uint8 of triton_repo/payloads into its repository, triton_repo/tensors.py"
BEHIND = "into the folder 1 of the former, the latter as clip_uint8 with an empty folder 1, or exclude the"
FLOOR = f"copy triton_repo/null/null into its repository, and {TENSORS}, or leave out --floor"


@pytest.mark.parametrize(
    ("endpoint", "fix"),
    [
        (ONNX, "name another by --onnx-model"),
        (preset("trt", "grpc", "clip_trt"), "name another by --trt-model"),
        (ONNX.floor(), FLOOR),
        (
            preset("emulated", "http", "emulated"),
            f"copy triton_repo/emulated/emulated into its repository, and {TENSORS}",
        ),
        (preset("onnx", "grpc", "clip_uint8", "uint8"), f"{BEFORE} {BEHIND} endpoint with --endpoints"),
    ],
)
def test_a_model_that_is_missing_is_named_with_its_fix(endpoint: Endpoint, fix: str) -> None:
    told = str(backend_of(endpoint).check.keywords["fix"])  # type: ignore[attr-defined]
    states = {"b": "READY", "a": "READY", "c": "UNAVAILABLE unloaded"}
    sentence = missing_model(endpoint, "HTTP 400", states, told)
    assert sentence == f"has no model {endpoint.model!r} that is ready (HTTP 400; it has a, b); {fix}"


def test_a_server_without_any_model() -> None:
    assert "it has none" in missing_model(ONNX, "", {})


def test_a_model_that_is_not_ready_is_not_called_absent() -> None:
    assert "(UNAVAILABLE no such file)" in missing_model(ONNX, "", {"clip": "UNAVAILABLE no such file"})


SERVICE = {"weights_sha256": "0", "instances": 1}
BEFORE_TRITON = {"weights_sha256": "0", "upstream": {"address": "gpu:8011", "model": "clip"}}
PYTORCH = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "gpu:8002")
GATEWAY = Endpoint("gateway-http", "gateway", "http", "jpeg", "gpu:8040")


COMPUTES = "is not a gateway, but computes itself; give a gateway's URL, or --pytorch-url"
BEFORE_CLIP = "is a gateway to clip at gpu:8011; give the service's URL, or --gateway-url"


@pytest.mark.parametrize(
    ("endpoint", "told", "sentence"), [(PYTORCH, BEFORE_TRITON, BEFORE_CLIP), (GATEWAY, SERVICE, COMPUTES)]
)
def test_a_gateway_and_a_service_are_told_apart(endpoint: Endpoint, told: Any, sentence: str) -> None:
    for asked in (endpoint, endpoint.floor()):
        with pytest.raises(TargetError) as caught:
            check_role(asked, told)
        assert str(caught.value) == sentence


def test_services_in_their_own_places_and_strangers_pass() -> None:
    check_role(PYTORCH, SERVICE)
    check_role(GATEWAY, BEFORE_TRITON)
    for endpoint in (PYTORCH, GATEWAY):
        check_role(endpoint, {})
