"""How a server is set up, by its own word: Triton's over both protocols, the service's, and nobody's."""

import json
from typing import Any

import pytest
from gevent import socket

from tests.stand_ins import stand_in
from tests.swarm.wsgi import answering
from users.backends.asking import read_serving
from users.endpoint import Endpoint
from users.triton.api import serving

BATCHING = {"instance_group": [{"count": 2}], "max_batch_size": 32}


def service(address: str) -> Endpoint:
    return Endpoint("pytorch-http", "pytorch", "http", "jpeg", address)


def triton(address: str, protocol: Any = "http") -> Endpoint:
    return Endpoint(f"onnx-{protocol}", "onnx", protocol, "fp32", address, "clip")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({**BATCHING, "dynamic_batching": {"max_queue_delay_microseconds": 2000}}, (2, 32, True, 2_000_000)),
        # 64 bits as text, as protobuf's JSON has it
        ({**BATCHING, "dynamic_batching": {"max_queue_delay_microseconds": "9"}}, (2, 32, True, 9_000)),
        ({**BATCHING, "dynamic_batching": {}}, (2, 32, True, 0)),
        (BATCHING, (2, 32, False, 0)),
        # so many on each GPU of a group
        (
            {"instance_group": [{"count": 2, "gpus": [0, 1]}, {"count": 3, "gpus": []}, {"gpus": [0]}]},
            (8, 0, False, 0),
        ),
        ({}, (None, 0, False, 0)),
    ],
)
def test_tritons_configuration(config: dict[str, Any], told: tuple[Any, ...]) -> None:
    names = ("instances", "max_batch", "batching", "batching_delay_ns")
    assert serving(config) == dict(zip(names, told, strict=True))


def test_triton_over_http() -> None:
    config = {**BATCHING, "dynamic_batching": {"max_queue_delay_microseconds": 100}}
    asked: list[str] = []
    with answering("200 OK", json.dumps(config).encode(), asked) as address:
        told = read_serving(triton(address))
    assert told == {"instances": 2, "max_batch": 32, "batching": True, "batching_delay_ns": 100_000}
    assert asked == ["/v2/models/clip/config", "/v2"]


def test_triton_over_grpc() -> None:
    with stand_in("fake_triton.py") as address:
        told = read_serving(triton(address, "grpc"))
    assert told == {"instances": 2, "max_batch": 32, "batching": True, "batching_delay_ns": 500_000}


def test_the_floor_is_another_model_of_the_same_server() -> None:
    asked: list[str] = []
    with answering("200 OK", b'{"max_batch_size": 64}', asked) as address:
        assert read_serving(triton(address).floor())["max_batch"] == 64
        assert read_serving(service(address).floor())["batching"] is None
    assert asked == ["/v2/models/null/config", "/v2", "/readyz"]


UNTOLD = {"batching": None, "batching_delay_ns": None}


@pytest.mark.parametrize(
    ("status", "body", "instances"),
    [
        ("200 OK", b'{"status": "ready", "instances": 1}', 1),
        ("200 OK", b'{"status": "ready"}', None),
        ("200 OK", b"[]", None),
        ("404 Not Found", b"", None),
    ],
)
def test_a_service_need_not_tell(status: str, body: bytes, instances: int | None) -> None:
    with answering(status, body) as address:
        told = read_serving(service(address))
    batching = {"batching": False, "batching_delay_ns": 0} if instances else UNTOLD
    assert told == {"instances": instances, "max_batch": None, **batching}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("404 Not Found", b'{"error": "no model"}', "rejected"),
        ("500 Oh", b"", "server-error"),
        ("200 OK", b"<html>", "bad-reply"),
        ("200 OK", b'{"max_batch_size": "many"}', "bad-reply"),
        ("200 OK", b"[1]", "other"),
    ],
)
def test_a_configuration_that_cannot_be_read(status: str, body: bytes, kind: str) -> None:
    with answering(status, body) as address:
        told = read_serving(triton(address))
    assert told == {"error": f"the configuration of onnx-http cannot be read ({kind})"}


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_nobody_there(protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    sentence = f"the configuration of onnx-{protocol} cannot be read (refused)"
    assert read_serving(triton(address, protocol)) == {"error": sentence}
