"""Tokens on every way of sending: each request carries it, and nothing else does."""

from collections.abc import Iterator

import pytest

from tests.stand_ins import stand_in
from tests.users.ways import GRPC, GRPC_LIBRARY, IMAGES, LIBRARY, OWN, Way, ask, endpoint_of
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.redact import spellings
from users.tls import TOKEN, Security
from users.transport.connections import PER_REQUEST, SAME_ARGS, SHARED

pytestmark = pytest.mark.system

SECRET = "hunter2-and-more"
Servers = dict[str, str]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Servers]:
    """Servers who want the token."""
    token = ("--token", SECRET)
    with stand_in("fake_service.py", *token) as http, stand_in("fake_triton.py", *token) as grpc:
        yield {"http": http, "grpc": grpc}


WAYS = [
    OWN, LIBRARY, (Embed, SHARED, False), (Embed, PER_REQUEST, False), GRPC,
    (V2Grpc, SHARED, False), GRPC_LIBRARY, (V2Grpc, SHARED, True), (V2Grpc, SAME_ARGS, True),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_request_carries_the_token(guarded: Servers, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    address = guarded[way[0].wire]
    assert ask(way, address, Security(token=TOKEN), tls=False, times=3).embeddings.shape == (1, 512)


@pytest.mark.parametrize("way", WAYS)
def test_a_repeated_token_is_hidden(guarded: Servers, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "another-secret")
    spellings.cache_clear()
    with pytest.raises(RequestError) as caught:
        ask(way, guarded[way[0].wire], Security(token=TOKEN), tls=False)
    spellings.cache_clear()
    assert caught.value.kind is ErrorKind.REJECTED
    assert f"not for Bearer [{TOKEN}]" in str(caught.value)


def test_no_token_is_in_a_prepared_request_or_in_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    for way in (OWN, GRPC):
        kept = endpoint_of(way, "127.0.0.1:1", Security(token=TOKEN))
        prepared = way[0](kept).prepare(IMAGES, (0,))
        assert SECRET not in repr((prepared, kept, kept.to_dict(), prepared.head))
        assert SECRET.encode() not in bytes(prepared.body)


def test_security_travels_with_the_endpoint_and_old_records_have_none() -> None:
    security = Security("/ca.pem", "/c.pem", "/k.pem", False, TOKEN)
    endpoint = endpoint_of(OWN, "gpu:1", security)
    assert Endpoint.from_dict(endpoint.to_dict()) == endpoint
    old = {
        "name": "x",
        "backend": "y",
        "protocol": "http",
        "payload": "jpeg",
        "address": "gpu:1",
        "model": "",
    }
    assert Endpoint.from_dict(old) == Endpoint("x", "y", "http", "jpeg", "gpu:1")
