"""What servers by URL say that they hold, and strangers, who say anything."""

import json

import pytest

from tests.stand_ins import stand_in
from tests.swarm.wsgi import answering
from tests.users.backends.test_serving import service, triton
from users.backends.asking import stated

HELD = {"model": "ViT-B-32", "weights": "random (seed 0)"}
READY = {"status": "ready", **HELD, "weights_sha256": "ab", "dim": 512}


def config(**parameters: str) -> bytes:
    """A model's configuration as Triton tells it over HTTP."""
    told = {name: {"string_value": value} for name, value in parameters.items()}
    return json.dumps({"name": "clip", "parameters": told}).encode()


def test_a_service_of_ours() -> None:
    asked: list[str] = []
    with answering("200 OK", json.dumps(READY).encode(), asked) as address:
        assert stated(service(address)) == HELD
    assert asked == ["/readyz"]


def test_a_triton_of_ours() -> None:
    asked: list[str] = []
    with answering("200 OK", config(**HELD, weights_sha256="ab", onnx_path="/m"), asked) as address:
        assert stated(triton(address)) == HELD
    assert asked == ["/v2/models/clip/config", "/v2"]
    with answering("200 OK", config(emulated="a100: 3 ms")) as address:
        assert stated(triton(address)) == {"emulated": "a100: 3 ms"}


def test_over_grpc() -> None:
    with stand_in("fake_triton.py") as address:
        assert stated(triton(address, "grpc")) == {"weights": "random (seed 3)", "server_version": "2.51.0"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("404 Not Found", b""),
        ("200 OK", b"fine"),
        ("200 OK", b"[]"),
        ("200 OK", b'{"status": "ready"}'),
        ("200 OK", b'{"weights": 7, "parameters": {"weights": {"string_value": 7}}}'),
        ("200 OK", b'{"weights": ["random"], "parameters": {"weights": "random"}}'),
        ("200 OK", b'{"weights": "", "parameters": []}'),
    ],
)
def test_one_of_another_make(status: str, body: bytes) -> None:
    with answering(status, body) as address:
        assert stated(service(address)) == stated(triton(address)) == {}


def test_what_a_stranger_says_is_one_short_line() -> None:
    said = "random\n\x1b[2J" + "x" * 5_000
    expected = {"weights": ("random \\x1b[2J" + "x" * 5_000)[:120]}
    with answering("200 OK", json.dumps({"weights": said}).encode()) as address:
        assert stated(service(address)) == expected
    with answering("200 OK", config(weights=said)) as address:
        assert stated(triton(address)) == expected
