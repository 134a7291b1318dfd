"""What compressed requests say on the wire, and answers that are compressed, by the suite's own clients."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tests.users.http2.callers import Asked, Listener, Plain, ended
from tests.users.http2.peer import framed, head, message, trailers
from tests.users.slow_server import Server, answer_of, serving
from tests.users.transport.test_http_response import Says
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.v2_http import V2Http
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.http2.frames import DATA
from users.transport.admin_connection import AdminConnection
from users.transport.transports import client

pytestmark = pytest.mark.system

PACKED = gzip.compress(b"a request" * 9)
ANSWER = bytes(range(256))
BOMB = gzip.compress(bytes(1 << 23))


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


def call_to(listener: Listener, compression: str, packing: str = "gzip") -> Asked:
    codec = Plain(Endpoint("x", "x", "grpc", "fp32", listener.address))
    codec.compression = compression
    user = client(codec, 10)
    user.open()
    call = Asked(user, PACKED)
    call._prepared = PreparedRequest(PACKED, (0,), packing=packing)
    call.start()
    return call


@pytest.mark.parametrize("packing", ["gzip", ""])
def test_a_compressed_call_says_so(listener: Listener, packing: str) -> None:
    call = call_to(listener, "gzip", packing)
    peer = listener.accept().greet()
    assert peer.whole(1, packed=bool(packing)) == PACKED
    fields = {name: value for name, value in peer.streams[1].fields.items() if "encoding" in name}
    assert fields == {"grpc-accept-encoding": "identity,gzip", "grpc-encoding": "gzip"}
    peer.answer(1)
    assert ended(call) == b"good"


def answered(
    listener: Listener, asked: str, body: bytes, encoding: str
) -> tuple[Asked, bytes | RequestError]:
    call = call_to(listener, asked)
    peer = listener.accept().greet()
    peer.whole(1, packed=True)
    fields = {":status": "200", "content-type": "application/grpc"}
    fields |= {"grpc-encoding": encoding} if encoding else {}
    peer.raw(head(1, fields), framed(DATA, 0, 1, message(body, 1)), trailers(1))
    return call, ended(call)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_answer_is_read_and_counted_as_on_the_wire(listener, name, pack) -> None:  # type: ignore[no-untyped-def]
    call, found = answered(listener, name, pack(ANSWER), name)
    assert (found, call.response_bytes) == (ANSWER, len(pack(ANSWER)))


@pytest.mark.parametrize(
    ("asked", "body", "encoding", "said"),
    [
        ("gzip", BOMB, "gzip", "more than 1,114,112 bytes"),
        ("gzip", gzip.compress(ANSWER)[:-3], "gzip", "cut off"),
        ("gzip", ANSWER, "gzip", "broken"),
        ("gzip", ANSWER, "snappy", "not asked for"),
        ("gzip", ANSWER, "", "not asked for"),
        ("", gzip.compress(ANSWER), "gzip", "not asked for"),
    ],
)
def test_what_cannot_be_unpacked_is_a_bad_reply(
    listener: Listener, asked: str, body: bytes, encoding: str, said: str
) -> None:
    _, found = answered(listener, asked, body, encoding)
    assert isinstance(found, RequestError)
    assert (str(found.kind), said in found.detail) == ("bad-reply", True)


VECTORS = b'{"outputs":[{"name":"embedding","shape":[1,2],"datatype":"FP32","data":[1.5,2.5]}]}'


@pytest.mark.parametrize("by_library", [False, True])
@pytest.mark.parametrize(
    ("asked", "body", "encoding", "found"),
    [
        ("gzip", gzip.compress(VECTORS), "GZIP", None),
        ("deflate", zlib.compress(VECTORS), "deflate", None),
        ("gzip", VECTORS, "", None),
        ("gzip", VECTORS, "identity", None),
        ("gzip", BOMB, "gzip", "bad-reply"),
        ("gzip", gzip.compress(VECTORS)[:-3], "gzip", "bad-reply"),
        ("gzip", VECTORS, "br", "bad-reply"),
        ("", gzip.compress(VECTORS), "gzip", None),
        ("", zlib.compress(VECTORS), "deflate", None),
        ("", zlib.compress(VECTORS, wbits=-zlib.MAX_WBITS), "deflate", None),
        ("", gzip.compress(zlib.compress(VECTORS)), "deflate, x-gzip", None),
        ("", VECTORS, "zstd", "in the encoding 'zstd', which was not asked for"),
    ],
)
def test_answers_over_http(
    asked: str, body: bytes, encoding: str, found: str | None, by_library: bool
) -> None:
    named = {"Content-Encoding": encoding} if encoding else {}
    with serving(Says([answer_of(body, **named)])) as server:
        codec = codec_at(V2Http, f"127.0.0.1:{server.port}")
        codec.compression = asked
        # tritonclient reads answers that are JSON only where nothing says how long their head is.
        codec.vectors_by_library = codec.vectors  # type: ignore[method-assign]
        with client(codec, 10, by_library=by_library) as user:
            if found:
                with pytest.raises(RequestError, match=found):
                    user.send(PreparedRequest(b"asked", (0,)))
                return
            reply = user.send(PreparedRequest(b"asked", (0,)))
    assert np.array_equal(reply.embeddings, [[1.5, 2.5]])
    assert reply.response_bytes == len(body)


@pytest.mark.parametrize(("encoding", "said"), [("gzip", "HTTP 400 no such model"), ("br", "HTTP 400$")])
def test_a_compressed_refusal_is_read(encoding: str, said: str) -> None:
    refused = answer_of(gzip.compress(b"no such model"), **{"Content-Encoding": encoding})
    with serving(Says([refused.replace(b"200 OK", b"400 Bad Request")])) as server:
        codec = codec_at(V2Http, f"127.0.0.1:{server.port}")
        with client(codec, 10) as user, pytest.raises(RequestError, match=said):
            user.send(PreparedRequest(b"asked", (0,)))


def test_what_is_asked_of_a_server_may_come_compressed() -> None:
    def answers(_: Server, peer: Any) -> None:
        peer.recv(65536)
        peer.sendall(answer_of(gzip.compress(b'{"ready": true}'), **{"Content-Encoding": "gzip"}))

    with (
        serving(answers) as server,
        closing(AdminConnection(f"127.0.0.1:{server.port}", 10)) as asks,
    ):
        assert asks.get_json("/") == {"ready": True}


LOCATION = "/v1/embed/?sig=0a1b2c3d"


@pytest.mark.parametrize("by_library", [False, True])
@pytest.mark.parametrize(
    ("status", "named", "body", "said"),
    [
        (
            307,
            {"Location": LOCATION},
            b"",
            "HTTP 307; it redirects to http://{at}/v1/embed/?sig=[hidden]; giv",
        ),
        (308, {"Location": "https://b.example/"}, b"", "HTTP 308; it redirects to https://b.example/; give"),
        (
            302,
            {"Location": "other"},
            b"moved",
            "HTTP 302 moved; it redirects to http://{at}/v2/models/m/other;",
        ),
        (301, {}, b"", "HTTP 301; it redirects without saying where"),
        (200, {}, b'{"error": "out of memory"}', 'HTTP 200 {"error": "out of memory"}; '),
        (200, {}, b'{"detail": [{"loc": ["body"]}]}', 'HTTP 200 {"detail": [{"loc": ["body"]}]}; '),
        (200, {}, b"<html>\x1b[31mSign in</html>", "HTTP 200 <html>\\x1b[31mSign in</html>; "),
        (200, {}, b"null", "HTTP 200 null; "),
        (200, {}, b"", "HTTP 200 with an empty body"),
        (200, {}, b'{"outputs": [[1.25, 2.5]]}', "an answer of another form than expected"),
    ],
)
def test_an_answer_without_vectors_fails_in_its_own_words(
    status: int, named: dict[str, str], body: bytes, said: str, by_library: bool
) -> None:
    answer = answer_of(body, **named).replace(b"200 OK", f"{status} Any".encode())
    with serving(Says([answer])) as server:
        codec = codec_at(V2Http, f"127.0.0.1:{server.port}")
        codec.vectors_by_library = codec.vectors  # type: ignore[method-assign]
        with client(codec, 10, by_library=by_library) as user, pytest.raises(RequestError) as caught:
            user.send(PreparedRequest(b"asked", (0,)))
    assert caught.value.kind is ErrorKind.BAD_REPLY
    assert caught.value.detail.startswith(said.format(at=codec.endpoint.address) if status > 300 else said)
