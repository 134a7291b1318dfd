"""Endpoints, their floors, and the server behind each."""

import pytest

from users import (
    Endpoint,
    JpegHttpUser,
    TritonGrpcUser,
    TritonHttpUser,
    TritonJpegOverGrpcUser,
    TritonJpegOverHttpUser,
    TritonJsonTensorsHttpUser,
    TritonPixelsOverGrpcUser,
    TritonPixelsOverHttpUser,
)

ONNX_HTTP = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "openclip_vit_b32")
ONNX_GRPC = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "gpu:8011", "openclip_vit_b32")
PYTORCH = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "gpu:8002")
EMULATED = Endpoint("emulated-grpc", "emulated", "grpc", "fp32", "gpu:8031", "emulated")


@pytest.mark.parametrize(
    ("endpoint", "floor"),
    [
        (ONNX_HTTP, Endpoint("onnx-http-floor", "null", "http", "fp32", "gpu:8010", "null")),
        (ONNX_GRPC, Endpoint("onnx-grpc-floor", "null", "grpc", "fp32", "gpu:8011", "null")),
        (PYTORCH, Endpoint("pytorch-http-floor", "null", "http", "jpeg", "gpu:8002", "")),
        (EMULATED, Endpoint("emulated-grpc-floor", "null", "grpc", "fp32", "gpu:8031", "null")),
    ],
)
def test_a_floor_is_the_same_server_without_its_model(endpoint: Endpoint, floor: Endpoint) -> None:
    made = endpoint.floor()
    assert made == floor
    assert (made.floor_of, endpoint.floor_of) == (endpoint.name, "")
    assert made.server == endpoint.server == endpoint.backend
    assert (made.host, made.port) == (endpoint.host, endpoint.port)
    assert Endpoint.from_dict(made.to_dict()) == made


def test_a_backend_with_a_hyphen_is_still_the_floors_server() -> None:
    endpoint = Endpoint("my-own-http", "my-own", "http", "fp32", "gpu:1", "m")
    assert endpoint.floor().server == "my-own"


def test_which_answers_are_embeddings_of_the_pictures() -> None:
    computing = {endpoint.name: endpoint.computes for endpoint in (ONNX_HTTP, PYTORCH, EMULATED)}
    assert computing == {"onnx-http": True, "pytorch-http": True, "emulated-grpc": False}
    assert not any(endpoint.floor().computes for endpoint in (ONNX_HTTP, PYTORCH, EMULATED))


@pytest.mark.parametrize(
    ("address", "host", "port"), [("gpu:8010", "gpu", 8010), ("[::1]:8010", "::1", 8010), ("h:1", "h", 1)]
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    endpoint = Endpoint("x", "x", "http", "fp32", address)
    assert (endpoint.host, endpoint.port) == (host, port)


def test_a_payload_in_the_name_is_no_part_of_the_server() -> None:
    endpoint = Endpoint("onnx-json-http", "onnx", "http", "json", "gpu:1", "m")
    assert endpoint.floor().server == "onnx"
    assert endpoint.has_floor
    assert not Endpoint("onnx-jpeg-grpc", "onnx", "grpc", "jpeg", "gpu:1", "m_jpeg").has_floor


def test_each_way_of_sending_speaks_to_its_own_endpoints_alone() -> None:
    ways = {
        JpegHttpUser: Endpoint("pytorch-http", "pytorch", "http", "jpeg", "gpu:1"),
        TritonHttpUser: Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:1", "m"),
        TritonGrpcUser: Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "gpu:1", "m"),
        TritonJsonTensorsHttpUser: Endpoint("onnx-json-http", "onnx", "http", "json", "gpu:1", "m"),
        TritonJpegOverHttpUser: Endpoint("onnx-jpeg-http", "onnx", "http", "jpeg", "gpu:1", "m_jpeg"),
        TritonJpegOverGrpcUser: Endpoint("onnx-jpeg-grpc", "onnx", "grpc", "jpeg", "gpu:1", "m_jpeg"),
        TritonPixelsOverHttpUser: Endpoint("onnx-uint8-http", "onnx", "http", "uint8", "gpu:1", "m_uint8"),
        TritonPixelsOverGrpcUser: Endpoint("onnx-uint8-grpc", "onnx", "grpc", "uint8", "gpu:1", "m_uint8"),
    }
    for user, endpoint in ways.items():
        assert [other for other in ways if other.transport.speaks(endpoint)] == [user]
    assert JpegHttpUser.transport.speaks(Endpoint("gateway-http", "gateway", "http", "jpeg", "gpu:2"))
