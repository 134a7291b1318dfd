"""What compressed requests say on the wire, and answers that are compressed, by the suite's own clients."""

import gzip
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from tests.users.http2.callers import Asked, Listener, Plain, ended
from tests.users.http2.peer import framed, head, message, trailers
from tests.users.slow_server import answer_of, serving
from tests.users.transport.test_http_response import Says
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.v2_http import V2Http
from users.endpoint import Endpoint
from users.errors import RequestError
from users.http2.frames import DATA
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
        ("", gzip.compress(VECTORS), "gzip", "bad-reply"),
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


def test_a_compressed_refusal_is_read() -> None:
    refused = answer_of(gzip.compress(b"no such model"), **{"Content-Encoding": "gzip"})
    with serving(Says([refused.replace(b"200 OK", b"400 Bad Request")])) as server:
        codec = codec_at(V2Http, f"127.0.0.1:{server.port}")
        codec.compression = "gzip"
        with client(codec, 10) as user, pytest.raises(RequestError, match="HTTP 400 no such model"):
            user.send(PreparedRequest(b"asked", (0,)))
