"""Where targets are, and the doubts and warnings that follow from it."""

import pytest

from swarm.targets.servers import caveats_of, elsewhere, in_clear, record_of, told
from users.endpoint import Endpoint
from users.tls import OPEN, Security
from users.transport.sockets import resolved

ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "gpu:8010", "m")
TOKEN = Security(token="INFERSWARM_TOKEN")


def secured(tls: bool, security: Security) -> Endpoint:
    return Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "gpu:8011", "m", tls, security)


def test_addresses_stand_for_others() -> None:
    assert resolved(Endpoint("x", "y", "http", "jpeg", "127.0.0.1:1")) == ["127.0.0.1"]
    assert resolved(Endpoint("x", "y", "http", "jpeg", "[::1]:1")) == ["::1"]
    assert "127.0.0.1" in resolved(Endpoint("x", "y", "http", "jpeg", "localhost:1"))
    assert resolved(Endpoint("x", "y", "http", "jpeg", "nowhere.invalid:1")) == []


@pytest.mark.parametrize(
    ("endpoint", "addresses", "line"),
    [
        (ONNX, ["10.0.0.5"], "onnx-http: gpu:8010 is 10.0.0.5, without TLS, without a token"),
        (ONNX, [], "onnx-http: gpu:8010 is unknown, without TLS, without a token"),
        (secured(True, TOKEN), ["10.0.0.5", "fe80::1"], "onnx-grpc: grpcs://gpu:8011 is 10.0.0.5, fe80::1"
         " (a connection goes to one of these; the report says to which), over TLS, token of"
         " INFERSWARM_TOKEN"),
    ],
)  # fmt: skip
def test_the_line_for_a_person(endpoint: Endpoint, addresses: list[str], line: str) -> None:
    assert told(endpoint, addresses) == line


def test_what_the_fingerprint_keeps() -> None:
    found = {"address": "gpu:8011", "resolved": ["10.0.0.5"], "tls": True, "token": "INFERSWARM_TOKEN"}
    assert record_of(secured(True, TOKEN), ["10.0.0.5"]) == found


@pytest.mark.parametrize(
    ("tls", "security", "addresses", "warned"),
    [
        (False, TOKEN, ["127.0.0.1", "10.0.0.5"], True),
        (False, TOKEN, [], True),
        (False, TOKEN, ["127.0.0.1", "::1"], False),
        (True, TOKEN, ["10.0.0.5"], False),
        (False, OPEN, ["10.0.0.5"], False),
    ],
)
def test_a_token_in_clear_is_warned_of(
    tls: bool, security: Security, addresses: list[str], warned: bool
) -> None:
    warning = in_clear({"onnx-grpc": record_of(secured(tls, security), addresses)})
    assert warning.startswith("WARNING: the token is sent in clear text to onnx-grpc: ") is warned
    assert bool(warning) is warned


def test_workers_who_find_another_address_are_named() -> None:
    here = {"onnx-http": ["10.0.0.5", "10.0.0.6"], "onnx-grpc": ["10.0.0.5"]}
    there = {
        "w0": {"onnx-http": ["10.0.0.6", "10.0.0.5"], "onnx-grpc": ["10.0.0.5"]},
        "w1": {"onnx-http": ["10.9.9.9"], "onnx-grpc": []},
    }
    found = elsewhere(here, there)
    assert found == {
        "onnx-http": "its address is 10.0.0.5, 10.0.0.6 for the master and 10.9.9.9 for w1",
        "onnx-grpc": "its address is 10.0.0.5 for the master and unknown for w1",
    }
    assert list(caveats_of(ONNX, found)) == [("targets-differ", found["onnx-http"])]
    assert list(caveats_of(ONNX.floor(), {"onnx-http": "x"})) == [("targets-differ", "x")]
    assert list(caveats_of(ONNX, {})) == []


def test_a_server_that_has_proved_nothing_is_doubted() -> None:
    ((code, text),) = caveats_of(secured(True, Security(verify=False)), {})
    assert code == "tls-unverified"
    assert text == "--tls-no-verify: the server at grpcs://gpu:8011 has not proved its identity"
    assert list(caveats_of(secured(True, TOKEN), {})) == []
