"""Answers of every form against a real socket: read whole, the connection kept or not, strangers refused."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from tests.users.slow_server import LARGE, Server, answer_of, serving
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.v2_http import V2Http
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.transport.http import HttpConnection, HttpTransport
from users.transport.http_response import CHUNK_BYTES, parsed

OK = "HTTP/1.1 200 OK\r\n"
LONG = bytes(range(256)) * 2000
REQUEST = PreparedRequest(b"asked", (0,), {"Content-Type": "text/plain"})


class Says:
    """Answers each request with the next of some pieces of bytes, and hangs up where it is told to."""

    def __init__(self, *answers: Sequence[bytes], then_hang_up: bool = False) -> None:
        self._answers, self._hangs_up, self.heads = list(answers), then_hang_up, list[bytes]()

    def __call__(self, server: Server, peer: Any) -> None:
        while self._answers and server.read(peer):
            for piece in self._answers.pop(0):
                peer.sendall(piece)
                server.pause()
            if self._hangs_up:
                return


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.users.slow_server.PAUSE_S", 0.005)


def of(server: Server, timeout_s: float = 10) -> HttpConnection:
    return HttpConnection(Endpoint("x", "x", "http", "jpeg", f"127.0.0.1:{server.port}"), timeout_s)


def chunked(body: bytes) -> bytes:
    half = len(body) // 2
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]))
    return f"{OK}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "body", "lasts"),
    [
        ([answer_of(b"ok")], b"ok", True),
        ([answer_of(b"")], b"", True),
        ([answer_of(LONG)], LONG, True),
        ([answer_of(LONG)[:20], answer_of(LONG)[20:100], answer_of(LONG)[100:]], LONG, True),
        ([answer_of(b"ok", Connection="close")], b"ok", False),
        ([answer_of(b"ok").replace(b"1.1", b"1.0")], b"ok", False),
        ([answer_of(b"ok", Connection="Keep-Alive").replace(b"1.1", b"1.0")], b"ok", True),
        ([chunked(LONG)], LONG, True),
        ([chunked(LONG)[:70], chunked(LONG)[70:]], LONG, True),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer_of(b"ok")], b"ok", True),
    ],
    ids=["plain", "empty", "long", "in pieces", "last", "old", "kept", "chunked", "chunks cut", "interim"],
)
def test_an_answer_is_read_whole(pieces: list[bytes], body: bytes, lasts: bool) -> None:
    with serving(Says(pieces, [answer_of(b"the next")])) as server:
        connection = of(server)
        answer = connection.post("/", REQUEST)
        assert (answer.status, bytes(answer.body), answer.lasts) == (200, body, lasts)
        assert list(answer.phases_ns) == ["send", "wait", "receive", "connect"]
        assert all(value >= 0 for value in answer.phases_ns.values())
        assert connection.post("/", REQUEST).body == b"the next"
        connection.close()
    assert server.connections == (1 if lasts else 2)
    assert server.bodies == [b"asked", b"asked"]


def test_a_body_that_ends_with_the_connection() -> None:
    ends = Says([f"{OK}\r\n".encode(), b"to the ", b"end"], then_hang_up=True)
    with serving(ends) as server, closing(of(server)) as connection:
        answer = connection.post("/", REQUEST)
    assert (answer.body, answer.lasts) == (b"to the end", False)


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ([b""], ErrorKind.RESET),
        ([answer_of(b"ok")[:10]], ErrorKind.RESET),
        ([answer_of(LONG)[:-1]], ErrorKind.RESET),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], ErrorKind.BAD_REPLY),
        ([b"HTTP/2 200\r\n\r\n"], ErrorKind.BAD_REPLY),
        ([b"HTTP/1.1 many\r\nContent-Length: 2\r\n\r\nok"], ErrorKind.BAD_REPLY),
        ([answer_of(b"ok") + b"and more"], ErrorKind.BAD_REPLY),
        ([answer_of(b"ok").replace(b": 2", b": 20000000000000")], ErrorKind.BAD_REPLY),
        ([OK.encode() + b"x: y\r\n" * CHUNK_BYTES], ErrorKind.BAD_REPLY),
        ([answer_of(b"no").replace(b"200", b"404")], ErrorKind.REJECTED),
        ([answer_of(b"no").replace(b"200", b"503")], ErrorKind.SERVER_ERROR),
        ([answer_of(b"").replace(b"200", b"204")], ErrorKind.BAD_REPLY),
    ],
)
def test_what_is_no_answer_has_its_kind(pieces: list[bytes], kind: ErrorKind) -> None:
    class Bare(V2Http):
        """A codec, without what it makes of an answer."""

        name = V2Http.name

        def vectors(self, answer: Any) -> Any:
            raise AssertionError("no answer to decode")

    with serving(Says(pieces, then_hang_up=True)) as server:
        codec = codec_at(Bare, f"127.0.0.1:{server.port}")
        with HttpTransport(codec, 10) as user, pytest.raises(RequestError) as caught:
            user.send(REQUEST)
    assert caught.value.kind is kind


def test_a_connection_closed_while_idle_costs_no_request() -> None:
    with serving(Says([answer_of(b"one")], [answer_of(b"two")], then_hang_up=True)) as server:
        connection = of(server)
        assert connection.post("/", REQUEST).body == b"one"
        while server.open:
            server.pause()
        assert connection.post("/", REQUEST).body == b"two"
        connection.close()
    assert server.connections == 2


def test_a_large_request_arrives_as_it_was() -> None:
    sent = bytes(range(256)) * (len(LARGE) // 256)
    with serving(Says([answer_of(b"ok")])) as server, closing(of(server)) as connection:
        assert connection.post("/", PreparedRequest(sent, ())).body == b"ok"
    assert server.bodies == [sent]


def test_what_a_request_looks_like() -> None:
    heads: list[bytes] = []

    def notes(server: Server, peer: Any) -> None:
        heads.append(peer.recv(4096))
        peer.sendall(answer_of(b"ok"))

    with serving(notes) as server, closing(of(server)) as connection:
        connection.post("/v2/models/m/infer", REQUEST)
    (head,) = heads
    lines = ("POST /v2/models/m/infer HTTP/1.1", f"Host: 127.0.0.1:{server.port}")
    lines += ("Content-Type: text/plain", "Content-Length: 5", "", "asked")
    assert head.decode() == "\r\n".join(lines)


def test_headers_by_names_in_lower_case() -> None:
    version, status, headers = parsed(
        b"HTTP/1.0 418 I'm a teapot\r\nServer-Timing: a;dur=1\r\nEMPTY:\r\nb: c:d "
    )
    assert (version, status) == ("HTTP/1.0", 418)
    assert headers == {"server-timing": "a;dur=1", "empty": "", "b": "c:d"}
