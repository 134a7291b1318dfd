"""The phase `connect`: of requests for which a connection was made, the host's name looked up included."""

import json
import time
from typing import Any

import gevent.socket
import pytest

from tests.users.slow_server import Server, answer_of, serving
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.embed import Embed
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.transport.connections import PER_REQUEST, PER_USER
from users.transport.http import HttpConnection
from users.transport.http_library import LibraryConnection
from users.transport.http_response import Connection
from users.transport.transports import client

pytestmark = pytest.mark.system

KINDS = [HttpConnection, LibraryConnection]
REQUEST = PreparedRequest(b"{}", (0,))
LOOKED_UP_S = 0.05
EMBEDDING = json.dumps({"embeddings": [[1.0, *[0.0] * 511]]}).encode()
REFUSAL = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 22\r\n\r\nthe rate limit is hit\n"
)


def closes(server: Server, peer: Any) -> None:
    """It hangs up after each answer, and says so."""
    server.read(peer)
    peer.sendall(answer_of(EMBEDDING, Connection="close"))


def keeps(server: Server, peer: Any) -> None:
    while server.read(peer):
        peer.sendall(answer_of(EMBEDDING))


def refuses(server: Server, peer: Any) -> None:
    while server.read(peer):
        peer.sendall(REFUSAL)


def phases_of(kind: type[Connection], server: Server, times: int, fresh: bool = False) -> list[Any]:
    """Of so many requests one after the other."""
    connection = kind(Endpoint("x", "x", "http", "jpeg", f"localhost:{server.port}"), 20, fresh)
    found = [connection.post("/", REQUEST).phases_ns for _ in range(times)]
    connection.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_hangs_up_costs_a_connection_each(kind: type[Connection]) -> None:
    with serving(closes) as server:
        found = phases_of(kind, server, 3)
        assert server.connections == 3
    assert all(phases_ns["connect"] > 0 for phases_ns in found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_connection_is_made_once(kind: type[Connection]) -> None:
    with serving(keeps) as server:
        first, *others = phases_of(kind, server, 3)
        assert server.connections == 1
    assert first["connect"] > 0
    assert all("connect" not in phases_ns for phases_ns in others)


def test_a_client_that_is_asked_for_one_each() -> None:
    with serving(keeps) as server:
        assert all(phases_ns["connect"] > 0 for phases_ns in phases_of(HttpConnection, server, 3, True))
        assert server.connections == 3


@pytest.mark.parametrize("kind", KINDS)
def test_looking_the_name_up_is_part_of_it(kind: type[Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    real = gevent.socket.getaddrinfo

    def slow(*place: Any, **more: Any) -> Any:
        gevent.sleep(LOOKED_UP_S)
        return real(*place, **more)

    monkeypatch.setattr(gevent.socket, "getaddrinfo", slow)
    with serving(closes) as server:
        began_ns = time.perf_counter_ns()
        (phases_ns,) = phases_of(kind, server, 1)
        took_ns = time.perf_counter_ns() - began_ns
    assert phases_ns["connect"] >= LOOKED_UP_S * 1e9 * 0.99
    assert sum(phases_ns.values()) <= took_ns


@pytest.mark.parametrize(
    ("by_library", "channels", "connects"),
    [(False, PER_USER, 1), (False, PER_REQUEST, 3), (True, PER_USER, 1)],
)
def test_a_user_s_replies_have_it(by_library: bool, channels: str, connects: int) -> None:
    with serving(keeps) as server:
        codec = codec_at(Embed, f"127.0.0.1:{server.port}")
        with client(codec, 20, channels, by_library) as user:
            replies = [user.send(REQUEST) for _ in range(3)]
    assert ["connect" in reply.phases_ns for reply in replies].count(True) == connects


@pytest.mark.parametrize("by_library", [False, True])
def test_a_refusal_keeps_its_status_and_when_to_ask_again(by_library: bool) -> None:
    with serving(refuses) as server:
        codec = codec_at(Embed, f"127.0.0.1:{server.port}")
        with client(codec, 20, PER_USER, by_library) as user, pytest.raises(RequestError) as caught:
            user.send(REQUEST)
    error = caught.value
    assert (error.kind, error.code, error.refused_for) == (ErrorKind.REJECTED, "429", "rate")
    assert (error.retry_after, error.retry_after_s) == ("3", 3)
