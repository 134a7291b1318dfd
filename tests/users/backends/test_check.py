"""The sentences for targets that lack something."""

import pytest

from users.backends.embed_service import check_role
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import TargetError
from users.triton.api import missing_model

ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "clip")
HELD = "(it has a, b)"


def fix_of(endpoint: Endpoint) -> str:
    """What a backend has its check say of a model that is missing."""
    return str(backend_of(endpoint).check.keywords["fix"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("endpoint", "sentence"),
    [
        (ONNX, f"has no model 'clip' that is ready {HELD}; name another by --onnx-model"),
        (
            Endpoint("trt-grpc", "trt", "grpc", "fp32", "gpu:8021", "clip_trt"),
            f"has no model 'clip_trt' that is ready {HELD}; name another by --trt-model",
        ),
        (
            ONNX.floor(),
            f"has no model 'null' that is ready {HELD}; "
            "copy triton_repo/null/null into its repository, and "
            "triton_repo/tensors.py into its folder 1, "
            "or leave out --floor",
        ),
        (
            Endpoint("emulated-http", "emulated", "http", "fp32", "gpu:8030", "emulated"),
            f"has no model 'emulated' that is ready {HELD}; "
            "copy triton_repo/emulated/emulated into its repository, and "
            "triton_repo/tensors.py into its folder 1",
        ),
        (
            Endpoint("onnx-uint8-grpc", "onnx", "grpc", "uint8", "gpu:8011", "clip_uint8"),
            f"has no model 'clip_uint8' that is ready {HELD}; "
            "copy normalise_uint8 and uint8 of triton_repo/payloads into its repository, "
            "triton_repo/tensors.py "
            "into the folder 1 of the former, the latter as clip_uint8 with an empty folder 1, "
            "or exclude the endpoint with --endpoints",
        ),
    ],
)
def test_a_model_that_is_missing_is_named_with_its_fix(endpoint: Endpoint, sentence: str) -> None:
    assert missing_model(endpoint, ["b", "a"], fix_of(endpoint)) == sentence


def test_a_server_without_any_model() -> None:
    assert "(it has none)" in missing_model(ONNX, [])


SERVICE = {"weights_sha256": "0", "instances": 1}
BEFORE_TRITON = {"weights_sha256": "0", "upstream": {"address": "gpu:8011", "model": "clip"}}
PYTORCH = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "gpu:8002")
GATEWAY = Endpoint("gateway-http", "gateway", "http", "jpeg", "gpu:8040")


@pytest.mark.parametrize(
    ("endpoint", "told", "sentence"),
    [
        (
            PYTORCH,
            BEFORE_TRITON,
            "is a gateway to clip at gpu:8011; give the service's URL, or --gateway-url",
        ),
        (GATEWAY, SERVICE, "is not a gateway, but computes itself; give a gateway's URL, or --pytorch-url"),
    ],
)
def test_a_gateway_and_a_service_that_computes_are_told_apart(
    endpoint: Endpoint, told: dict[str, object], sentence: str
) -> None:
    for asked in (endpoint, endpoint.floor()):
        with pytest.raises(TargetError) as caught:
            check_role(asked, told)
        assert str(caught.value) == sentence


def test_services_in_their_own_places_and_strangers_pass() -> None:
    check_role(PYTORCH, SERVICE)
    check_role(GATEWAY, BEFORE_TRITON)
    for endpoint in (PYTORCH, GATEWAY):
        check_role(endpoint, {})
