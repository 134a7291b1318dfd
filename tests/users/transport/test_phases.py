"""The phases of a request against real servers: what a server does slowly lies in the phase that waits.

The server runs in the client's own event loop, so each of its pauses begins when what comes before it on
the client's side has happened, and is timed by the same clock.
"""

from locust.env import Environment

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.pictures import image_set
from tests.stand_ins import stand_in
from tests.users.slow_server import (
    LARGE,
    Server,
    answer_of,
    answers_early_and_hangs_up,
    answers_in_two_pieces,
    reads_slowly,
    serving,
    waits,
)
from tests.users.ways import codec_at
from users import EmbeddingUser
from users.codecs.base import Codec, PreparedRequest
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.endpoint import Endpoint
from users.load.assignment import Assignment
from users.result import Result
from users.transport.http import HttpConnection
from users.transport.http_library import LibraryConnection
from users.transport.http_response import Connection, Stamps
from users.transport.transports import client

pytestmark = pytest.mark.system

IMAGES = image_set(3)
KINDS = [HttpConnection, LibraryConnection]
Handler = Callable[[Server, Any], None]
EMBEDDING = [1.0, *[0.0] * 511]


def connected(kind: type[Connection], server: Server) -> Connection:
    """A connection to that server, which is told of its moments."""
    made = kind(Endpoint("x", "x", "http", "jpeg", f"127.0.0.1:{server.port}"), 20)
    server.stamps = made._stamps
    return made


def posted(kind: type[Connection], handle: Handler, body: bytes) -> tuple[Mapping[str, int], list[int], int]:
    """One request's phases, the server's pauses, and the time of it all, in nanoseconds."""
    with serving(handle) as server:
        connection = connected(kind, server)
        began_ns = time.perf_counter_ns()
        answer = connection.post("/", PreparedRequest(body, ()))
        took_ns = time.perf_counter_ns() - began_ns
        assert answer.body == b"ok"
        connection.close()
    return answer.phases_ns, server.pauses_ns, took_ns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("handle", "body", "phase"),
    [
        (reads_slowly, LARGE, "send"),
        (waits, b"small", "wait"),
        (waits, LARGE, "wait"),
        (answers_in_two_pieces, b"small", "receive"),
    ],
)
def test_a_pause_is_in_its_phase(kind: type[Connection], handle: Handler, body: bytes, phase: str) -> None:
    phases_ns, (pause_ns,), took_ns = posted(kind, handle, body)
    assert list(phases_ns) == ["send", "wait", "receive", "connect"]
    assert phases_ns[phase] >= pause_ns
    assert all(value >= 0 for value in phases_ns.values())
    # With the whole pause in one of them, the others have none of it: the sum is no longer than it all.
    assert sum(phases_ns.values()) <= took_ns


@pytest.mark.parametrize("kind", KINDS)
def test_an_early_answer_to_a_request_that_broke_off_has_no_negative_phase(kind: type[Connection]) -> None:
    phases_ns, _, took_ns = posted(kind, answers_early_and_hangs_up, LARGE)
    assert all(value >= 0 for value in phases_ns.values())
    assert sum(phases_ns.values()) <= took_ns


def test_an_answer_before_the_end_of_sending_is_not_waited_for() -> None:
    stamps = Stamps()
    stamps.send_began, stamps.send_ended, stamps.first_byte, stamps.last_byte = 10, 40, 30, 70
    assert stamps.phases_ns() == {"send": 30, "wait": 0, "receive": 40}
    stamps.clear()
    assert stamps.phases_ns() == {"send": 0, "wait": 0, "receive": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_connection_begins_each_request_anew(kind: type[Connection]) -> None:
    with serving(waits) as server:
        connection = connected(kind, server)
        for number in range(3):
            began_ns = time.perf_counter_ns()
            answer = connection.post("/", PreparedRequest(b"small", ()))
            took_ns = time.perf_counter_ns() - began_ns
            assert answer.body == b"ok"
            assert answer.phases_ns["wait"] >= server.pauses_ns[number]
            # Had the first moments of an earlier request been kept, they would reach back beyond this one.
            assert sum(answer.phases_ns.values()) <= took_ns
        connection.close()
    assert server.connections == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_broke_is_replaced_and_stamped_again(kind: type[Connection]) -> None:
    with serving(reads_slowly) as server:  # which hangs up after each answer, and does not say so
        connection = connected(kind, server)
        for number in range(2):
            answer = connection.post("/", PreparedRequest(LARGE, ()))
            assert answer.phases_ns["send"] >= server.pauses_ns[number]
        connection.close()
    assert server.connections == 2


def embeds(server: Server, peer: Any) -> None:
    """The PyTorch service: an embedding, after a pause."""
    body = json.dumps({"embeddings": [EMBEDDING]}).encode()
    while server.read(peer):
        server.pause()
        peer.sendall(answer_of(body, Server_Timing="compute;dur=1.5"))


def test_a_users_phases_are_within_its_service_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(embeds) as server:
        results = requests_of(Embed, f"127.0.0.1:{server.port}", monkeypatch)
    assert [result.ok for result in results] == [True, True]
    for result, pause_ns in zip(results, server.pauses_ns, strict=True):
        assert set(result.phases_ns) - {"connect"} == {"encode", "send", "wait", "receive", "decode"}
        assert result.phases_ns["wait"] >= pause_ns
        assert result.phases_ns["decode"] > 0
        assert sum(result.phases_ns.values()) <= result.service_ns
        assert result.server_ns == {"compute": 1_500_000}
    prepared, built = results
    assert prepared.phases_ns["connect"] > 0
    assert "connect" not in built.phases_ns, "the connection was kept"
    assert prepared.phases_ns["encode"] == 0
    assert built.phases_ns["encode"] > 0
    assert server.bodies[0] == server.bodies[1], "built anew, it is the same request"
    assert prepared.request_bytes == built.request_bytes == len(server.bodies[0])


def triton(server: Server, peer: Any) -> None:
    """Triton over HTTP: a JSON head and a raw tensor behind it."""
    raw = np.array([EMBEDDING], dtype=np.float32).tobytes()
    output = {"name": "embedding", "datatype": "FP32", "shape": [1, 512]}
    head = json.dumps({"outputs": [{**output, "parameters": {"binary_data_size": len(raw)}}]}).encode()
    while server.read(peer):
        peer.sendall(answer_of(head + raw, **{HEADER_LENGTH: str(len(head))}))


def test_tritons_answer_is_decoded_after_its_last_byte() -> None:
    with serving(triton) as server:
        codec = codec_at(V2Http, f"127.0.0.1:{server.port}")
        prepared = codec.prepare(IMAGES, (0,))
        with client(codec, 20) as user:
            began_ns = time.perf_counter_ns()
            reply = user.send(prepared)
            took_ns = time.perf_counter_ns() - began_ns
    assert reply.embeddings.tolist() == [EMBEDDING]
    assert set(reply.phases_ns) == {"send", "wait", "receive", "connect", "decode"}
    assert reply.phases_ns["decode"] > 0
    assert sum(reply.phases_ns.values()) <= took_ns


def requests_of(form: type[Codec], address: str, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """A prepared request, and the same one built from its picture."""
    codec = codec_at(form, address)
    assignment = Assignment(codec, [codec.prepare(IMAGES, (1,))], 20)
    assignment.enter("measure")
    monkeypatch.setattr(EmbeddingUser, "assignment", assignment)
    user = EmbeddingUser(Environment(user_classes=[EmbeddingUser]))
    user.on_start()
    results = []
    for assignment.images in (None, IMAGES):
        results.append(user.request(assignment.pool[0], time.perf_counter_ns()))
    user.on_stop()
    return results


def test_grpc_shows_each_phase_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in("fake_triton.py", "--delay-ms", "20") as address:
        results = requests_of(V2Grpc, address, monkeypatch)
    seen = {"encode", "stream_wait", "flow_wait", "send", "wait", "receive", "decode"}
    assert [set(result.phases_ns) for result in results] == [seen | {"connect"}, seen]
    for result in results:
        assert result.ok
        assert result.phases_ns["wait"] >= 20_000_000
        assert all(result.phases_ns[name] > 0 for name in ("send", "receive", "decode"))
        assert sum(result.phases_ns.values()) <= result.service_ns
    assert [result.phases_ns["encode"] > 0 for result in results] == [False, True]


@pytest.mark.parametrize("by_library", [False, True])
@pytest.mark.parametrize(("form", "script"), [(Embed, "fake_service.py"), (V2Grpc, "fake_triton.py")])
def test_reading_the_vectors_is_decode(
    form: type[Codec], script: str, by_library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand_in(script) as address:
        codec = codec_at(form, address)
        name = "vectors_by_library" if by_library else "vectors"
        real = getattr(codec, name)
        monkeypatch.setattr(codec, name, lambda answer: time.sleep(0.05) or real(answer))
        with client(codec, 20, by_library=by_library) as user:
            prepared = codec.prepare(IMAGES, (0, 1))
            began_ns = time.perf_counter_ns()
            reply = user.send(prepared)
            took_ns = time.perf_counter_ns() - began_ns
    assert reply.phases_ns["decode"] >= 50_000_000
    assert sum(reply.phases_ns.values()) <= took_ns
    assert 2 * 512 * 4 <= reply.response_bytes < 2 * 512 * 32


def test_grpcio_shows_the_whole_flight_and_no_invented_split() -> None:
    with stand_in("fake_triton.py", "--delay-ms", "20") as address:
        codec = codec_at(V2Grpc, address)
        prepared = codec.prepare(IMAGES, (1,))
        with client(codec, 20, by_library=True) as user:
            phases_ns = user.send(prepared).phases_ns
    assert set(phases_ns) == {"wait", "decode"}
    assert phases_ns["wait"] >= 20_000_000
    assert phases_ns["decode"] > 0
