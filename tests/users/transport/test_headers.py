"""Headers of an endpoint, whose values are in the environment: on every way of sending, and in no text."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.stand_ins import stand_in
from tests.users.http2.callers import Plain
from tests.users.slow_server import Server, answer_of, serving
from tests.users.ways import GRPC, GRPC_LIBRARY, IMAGES, LIBRARY, OWN, Way, endpoint_of, user_of
from users import redact
from users.codecs.base import PreparedRequest
from users.endpoint import Endpoint
from users.errors import RequestError, status_error
from users.redact import redacted, spellings
from users.tls import TOKEN, Security, SecurityError
from users.transport.admin_connection import AdminConnection
from users.transport.headers import headers_of
from users.transport.transports import client

SECRET = "of-nobodys-business"
KEY, OF_KEY = ("X-Api-Key", "Key ${ANY_KEY}"), "the header X-Api-Key"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ANY_KEY", SECRET)
    monkeypatch.setenv(TOKEN, "token-of-all")
    monkeypatch.setattr(redact, "_others", set())
    spellings.cache_clear()
    yield
    spellings.cache_clear()


def with_headers(*headers: tuple[str, str], **more: Any) -> Endpoint:
    return replace(endpoint_of(OWN, "gpu:1", tls=False), headers=headers, **more)


def test_values_are_filled_in_where_they_are_sent() -> None:
    endpoint = with_headers(KEY, ("X-Tenant", "a $$5 b"), security=Security(token=TOKEN))
    sent = {"authorization": "Bearer token-of-all", "x-api-key": f"Key {SECRET}", "x-tenant": "a $5 b"}
    assert headers_of(endpoint) == sent
    assert SECRET not in repr(endpoint.to_dict())
    assert Endpoint.from_dict(endpoint.to_dict()) == endpoint


def test_its_own_authorization_goes_before_the_token() -> None:
    endpoint = with_headers(("Authorization", "Basic ${ANY_KEY}"), security=Security(token=TOKEN))
    assert headers_of(endpoint) == {"authorization": f"Basic {SECRET}"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("${NOBODYS_KEY}", "NOBODYS_KEY is not set, and the header X-Api-Key uses it; export it"),
        ("5$", f"{OF_KEY} has a $ that does not begin a variable; give ${{NAME}}, or $$ for a dollar"),
        *(
            (no, f"{OF_KEY} is not a valid header value; give printable ASCII")
            for no in ("a\r\nx", "${LINES_KEY}", "")
        ),
    ],
)
def test_values_that_do_not_serve(value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES_KEY", "secret\nx: y")
    with pytest.raises(SecurityError) as caught:
        headers_of(with_headers(("X-Api-Key", value)))
    assert str(caught.value) == said


def test_what_stands_in_a_header_is_hidden_from_then_on() -> None:
    assert redacted(f"who has {SECRET}?") == f"who has {SECRET}?"
    headers_of(with_headers(KEY))
    assert redacted(f"who has {SECRET}?") == "who has [ANY_KEY]?"
    assert status_error(401, f"not for {SECRET}".encode()).detail == "HTTP 401 not for [ANY_KEY]"


def asked_over_http(ask: Callable[[Endpoint], object]) -> str:
    """The head of the one request that is sent so, in small letters."""
    heads: list[bytes] = []

    def notes(server: Server, peer: Any) -> None:
        heads.append(peer.recv(65_536).partition(b"\r\n\r\n")[0])
        peer.sendall(answer_of(b"{}", Connection="close"))

    with serving(notes) as server:
        endpoint = with_headers(KEY, address=f"127.0.0.1:{server.port}", authority="clip.example")
        ask(endpoint)
    (head,) = heads
    return head.decode().lower() + "\r\n"


@pytest.mark.parametrize("way", [OWN, LIBRARY])
def test_every_request_over_http_has_them_and_its_host(way: Way) -> None:
    def ask(endpoint: Endpoint) -> None:
        with user_of(way, endpoint) as user, pytest.raises(RequestError, match="bad-reply"):
            user.send(user.codec.prepare(IMAGES, (0,)))

    head = asked_over_http(ask)
    assert f"\r\nx-api-key: key {SECRET}\r\n" in head
    assert head.count("\r\nhost: ") == head.count("\r\nhost: clip.example\r\n") == 1


def test_what_is_asked_beside_the_load_has_them_too() -> None:
    head = asked_over_http(lambda endpoint: AdminConnection.to(endpoint, 5).get("/metrics"))
    assert f"\r\nx-api-key: key {SECRET}\r\n" in head
    assert head.count("\r\nhost: ") == head.count("\r\nhost: clip.example\r\n") == 1


@pytest.mark.system
@pytest.mark.parametrize("way", [GRPC, GRPC_LIBRARY])
def test_every_call_over_grpc_has_them(way: Way) -> None:
    with stand_in("fake_triton.py", "--token", SECRET) as address:
        plain = endpoint_of(GRPC, address, tls=False)
        keyed = replace(plain, headers=(("Authorization", "Bearer ${ANY_KEY}"),))
        for endpoint in (keyed, replace(keyed, authority="clip.example")):
            with user_of(way, endpoint) as user:
                assert user.send(user.codec.prepare(IMAGES, (0,))).embeddings.shape == (1, 512)
        with user_of(way, plain) as user, pytest.raises(RequestError, match="rejected"):
            user.send(user.codec.prepare(IMAGES, (0,)))


@pytest.mark.system
def test_binary_metadata_is_the_same_over_the_own_wire_and_grpcio() -> None:
    """Given in base64, with its padding or without; the server has the bytes."""
    headers = (("X-One-Bin", "AAEC"), ("x-two-bin", "AAECAw=="), ("x-three-bin", "+/8"), ("x-text", "AAEC"))
    with stand_in("users/transport/metadata_server.py") as address:
        plain = Plain(Endpoint("x", "triton", "grpc", "fp32", address, headers=headers))
        for by_library in (False, True):
            with client(plain, 20.0, "per-user", by_library) as user:
                came = user.send(PreparedRequest(b"a request", (0,))).embeddings
            assert sorted(ast.literal_eval(came.astype(np.uint8).tobytes().decode())) == [
                ("x-one-bin", b"\0\1\2"),
                ("x-text", "AAEC"),
                ("x-three-bin", b"\xfb\xff"),
                ("x-two-bin", b"\0\1\2\3"),
            ]


@pytest.mark.parametrize("value", ["hello!", "AAECA", "AAEC=", "AA E", "AB", "-_8", "AAEC,AAEC", "="])
def test_binary_metadata_that_is_not_base64_is_refused(value: str) -> None:
    """Over HTTP names mean nothing."""
    grpc = Endpoint("x", "triton", "grpc", "fp32", "gpu:1", headers=(("X-A-Bin", value),))
    with pytest.raises(SecurityError) as caught:
        headers_of(grpc)
    said = "the header x-a-bin has bytes over gRPC, and its value is not base64; give base64"
    assert str(caught.value) == said
    assert headers_of(replace(grpc, protocol="http")) == {"x-a-bin": value}
