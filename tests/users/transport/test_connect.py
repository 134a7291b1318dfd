"""The phase `connect`: of requests for which a connection was made, the host's name looked up included."""

import json
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import gevent
import gevent.socket
import pytest

from tests.users.slow_server import Server, answer_of, serving
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.embed import Embed
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.transport.admin_connection import AdminConnection
from users.transport.connections import PER_REQUEST, PER_USER
from users.transport.http import HttpConnection
from users.transport.http_library import LibraryConnection
from users.transport.http_response import IDLE_NS, Connection
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
    assert phases_ns["connect"] > phases_ns["resolve"] >= LOOKED_UP_S * 1e9 * 0.99
    assert sum(phases_ns.values()) - phases_ns["resolve"] <= took_ns


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


def hangs_up(before: bytes = b"") -> Callable[[Server, Any], None]:
    """The first connection ends at its second request, which is not read, after so much of an answer."""

    def handle(server: Server, peer: Any) -> None:
        first = server.connections == 1
        while server.read(peer):
            peer.sendall(answer_of(EMBEDDING))
            if first:
                peer.recv(1, gevent.socket.MSG_PEEK)
                peer.sendall(before)
                gevent.sleep(0.02 if before else 0)
                return

    return handle


IDLE_S = IDLE_NS / 1e9 * 1.2


@pytest.mark.parametrize("by_library", [False, True])
@pytest.mark.parametrize(
    ("idle_s", "before", "is_resent"),
    [(IDLE_S, b"", True), (0, b"", False), (IDLE_S, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", False)],
)
def test_a_request_that_meets_the_end_of_an_idle_connection_is_sent_once_more(
    idle_s: float, before: bytes, is_resent: bool, by_library: bool
) -> None:
    with (
        serving(hangs_up(before)) as server,
        client(codec_at(Embed, f"127.0.0.1:{server.port}"), 5, PER_USER, by_library) as user,
    ):
        assert "resend" not in user.send(REQUEST).phases_ns
        gevent.sleep(idle_s)
        if is_resent:
            reply = user.send(REQUEST)
            assert 0 < reply.phases_ns["resend"] < reply.phases_ns["connect"]
        else:
            with pytest.raises(RequestError) as caught:
                user.send(REQUEST)
            assert caught.value.kind is ErrorKind.RESET
        assert "resend" not in user.send(REQUEST).phases_ns
        assert server.connections == 2


def test_a_fresh_connection_that_ends_is_not_tried_again() -> None:
    def ends(server: Server, peer: Any) -> None:
        peer.recv(1, gevent.socket.MSG_PEEK)

    with serving(ends) as server, client(codec_at(Embed, f"127.0.0.1:{server.port}"), 5) as user:
        for tries in (1, 2):
            gevent.sleep(IDLE_S)
            with pytest.raises(RequestError) as caught:
                user.send(REQUEST)
            assert (caught.value.kind, server.connections) == (ErrorKind.RESET, tries)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_study_s_own_questions_are_asked_again_too(method: str) -> None:
    def handle(server: Server, peer: Any) -> None:
        first = server.connections == 1
        while peer.recv(65536):
            peer.sendall(answer_of(b"{}"))
            if first:
                peer.recv(1, gevent.socket.MSG_PEEK)
                return

    with serving(handle) as server, closing(AdminConnection(f"127.0.0.1:{server.port}", 5)) as asks:
        assert [asks.ask(method, "/", b"x").status for _ in range(2)] == [200, 200]
        assert server.connections == 2
