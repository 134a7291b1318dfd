"""Endpoints, their floors, and the server behind each."""

from dataclasses import replace
from typing import Any

import pytest

from users import Endpoint
from users.backends.registry import codec_of, facts_of, has_floor
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import V2Http
from users.codecs.v2_json import V2Json

ONNX_HTTP = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "openclip_vit_b32")
ONNX_GRPC = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "gpu:8011", "openclip_vit_b32")
PYTORCH = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "gpu:8002")
EMULATED = Endpoint("emulated-grpc", "emulated", "grpc", "fp32", "gpu:8031", "emulated")


@pytest.mark.parametrize("endpoint", [ONNX_HTTP, ONNX_GRPC, PYTORCH, EMULATED])
def test_a_floor_is_the_same_server_without_its_model(endpoint: Endpoint) -> None:
    made = endpoint.floor()
    assert made.name == f"{endpoint.name}-floor"
    assert made.model == ("null" if endpoint.model else "")
    assert replace(made, name=endpoint.name, model=endpoint.model, floor_of="") == endpoint
    assert (made.floor_of, endpoint.floor_of) == (endpoint.name, "")
    assert (made.behind, endpoint.behind) == ("null", endpoint.backend)
    assert Endpoint.from_dict(made.to_dict()) == made


def test_which_answers_are_embeddings_of_the_pictures() -> None:
    computing = {endpoint.name: facts_of(endpoint).computes for endpoint in (ONNX_HTTP, PYTORCH, EMULATED)}
    assert computing == {"onnx-http": True, "pytorch-http": True, "emulated-grpc": False}
    assert not any(facts_of(endpoint.floor()).computes for endpoint in (ONNX_HTTP, PYTORCH, EMULATED))


@pytest.mark.parametrize(
    ("address", "host", "port"), [("gpu:8010", "gpu", 8010), ("[::1]:8010", "::1", 8010), ("h:1", "h", 1)]
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    endpoint = Endpoint("x", "x", "http", "fp32", address)
    assert (endpoint.host, endpoint.port) == (host, port)


def test_only_what_the_model_itself_takes_has_a_floor() -> None:
    assert has_floor(Endpoint("onnx-json-http", "onnx", "http", "json", "gpu:1", "m"))
    assert has_floor(PYTORCH)
    assert not has_floor(Endpoint("onnx-jpeg-grpc", "onnx", "grpc", "jpeg", "gpu:1", "m_jpeg"))


def test_each_way_of_sending_is_found_by_the_endpoint() -> None:
    ways: dict[Any, type] = {(backend, "http", "jpeg"): Embed for backend in ("pytorch", "gateway")}
    for payload in ("fp32", "jpeg", "uint8"):
        ways |= {("onnx", "http", payload): V2Http, ("trt", "grpc", payload): V2Grpc}
    for way, codec in {**ways, ("onnx", "http", "json"): V2Json}.items():
        assert type(codec_of(Endpoint("x", *way, "gpu:1", "m"))) is codec


def test_a_backend_that_nobody_registered_is_told_with_those_that_are_known() -> None:
    with pytest.raises(LookupError, match=r"there is no backend 'mine'; they are .*pytorch, gateway, onnx,"):
        codec_of(Endpoint("mine-http", "mine", "http", "fp32", "gpu:1"))
