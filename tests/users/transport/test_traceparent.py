"""A request's own header on each way of sending, and nothing of it in the requests beside it."""

import ast
from typing import Any

import numpy as np
import pytest

from tests.stand_ins import stand_in
from tests.users.http2.callers import Plain
from tests.users.slow_server import Server, answer_of, serving
from tests.users.ways import IMAGES, LIBRARY, OWN, Way, endpoint_of, user_of
from users.codecs.base import PreparedRequest
from users.endpoint import Endpoint
from users.errors import RequestError
from users.transport.transports import client

VALUE = "00-0af7651916cd43dd8448eb211c80319c-8448eb211c80319c-01"


@pytest.mark.parametrize("way", [OWN, LIBRARY])
def test_over_http_it_is_one_line_more_and_the_body_is_the_same(way: Way) -> None:
    came: list[bytes] = []

    def notes(server: Server, peer: Any) -> None:
        data = peer.recv(1 << 20)
        while len(data.partition(b"\r\n\r\n")[2]) < size:
            data += peer.recv(1 << 20)
        came.append(data)
        peer.sendall(answer_of(b"{}", Connection="close"))

    with (
        serving(notes) as server,
        user_of(way, endpoint_of(way, f"127.0.0.1:{server.port}", tls=False)) as user,
    ):
        plain = user.codec.prepare(IMAGES, (0,))
        size = len(plain.body)
        for prepared in (plain, plain.with_header("traceparent", VALUE), plain):
            with pytest.raises(RequestError, match="bad-reply"):
                user.send(prepared)
    before, traced, after = came
    assert before == after
    head, _, body = traced.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert [line.lower() for line in lines].count(f"traceparent: {VALUE}".encode()) == 1
    rest = [line for line in lines if not line.lower().startswith(b"traceparent")]
    assert (sorted(rest), body) == (
        sorted(before.partition(b"\r\n\r\n")[0].split(b"\r\n")),
        bytes(plain.body),
    )


@pytest.mark.system
@pytest.mark.parametrize("by_library", [False, True])
def test_over_grpc_it_is_metadata_of_its_call_alone(*, by_library: bool) -> None:
    plain = PreparedRequest(b"a request", (0,))
    with stand_in("users/transport/metadata_server.py") as address:
        codec = Plain(Endpoint("x", "triton", "grpc", "fp32", address, headers=(("x-own", "always"),)))
        with client(codec, 20.0, "per-user", by_library) as user:
            told = [
                user.send(one).embeddings for one in (plain, plain.with_header("traceparent", VALUE), plain)
            ]
    found = [sorted(ast.literal_eval(one.astype(np.uint8).tobytes().decode())) for one in told]
    own = ("x-own", "always")
    assert found == [[own], [("traceparent", VALUE), own], [own]]
