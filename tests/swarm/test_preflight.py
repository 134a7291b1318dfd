"""The sentences for targets that lack something."""

import pytest

from swarm.preflight import missing_model
from users.endpoint import Endpoint

ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "clip")
HELD = "(it holds a, b)"


@pytest.mark.parametrize(
    ("endpoint", "sentence"),
    [
        (ONNX, f"X: has no model 'clip' that is ready {HELD}; name another by --onnx-model"),
        (
            Endpoint("trt-grpc", "trt", "grpc", "fp32", "gpu:8021", "clip_trt"),
            f"X: has no model 'clip_trt' that is ready {HELD}; name another by --trt-model",
        ),
        (
            ONNX.floor(),
            f"X: has no model 'null' that is ready {HELD}; "
            "copy triton_repo/null/null into its repository, or leave --floor out",
        ),
        (
            Endpoint("emulated-http", "emulated", "http", "fp32", "gpu:8030", "emulated"),
            f"X: has no model 'emulated' that is ready {HELD}; "
            "copy triton_repo/emulated/emulated into its repository",
        ),
    ],
)
def test_a_model_that_is_missing_is_named_with_its_mend(endpoint: Endpoint, sentence: str) -> None:
    assert missing_model("X", endpoint, ["b", "a"]) == sentence


def test_a_server_without_any_model() -> None:
    assert "(it holds none)" in missing_model("X", ONNX, [])
