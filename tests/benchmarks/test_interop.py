"""benchmarks.interop: what its table says of what came, and that its strict server sees what is wrong."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import interop
from benchmarks.interop_servers import cases, servers
from benchmarks.interop_servers.callers import Caller
from benchmarks.interop_servers.cases import TEST_CASES, Wrong
from benchmarks.interop_servers.environments import NotHere
from benchmarks.interop_servers.programs.strict import breaches
from benchmarks.interop_servers.servers import PROXY_CASES, SERVERS, TRITON_CASES, Running, Server, started
from server.errors import SetUpError
from tests.processes import eventually
from users.errors import StatusError
from users.http2.frames import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, frame, settings_frame
from users.http2.header_blocks import request_block

PATH = "/grpc.testing.TestService/EmptyCall"
RIGHT = [
    *((":method", "POST"), (":scheme", "http"), (":path", PATH), (":authority", "127.0.0.1:1")),
    *(("grpc-timeout", "50m"), ("te", "trailers"), ("content-type", "application/grpc")),
]


def holds(_: Caller) -> None:
    return


def differs(_: Caller) -> None:
    raise Wrong("the answer is b'x', not b''")


def fails(_: Caller) -> None:
    raise StatusError("UNAVAILABLE", "gone")


def server_of(*said: str, broken: Exception | None = None) -> Server:
    """One that is not asked over any wire, and whose output grows by these lines."""
    lines = iter(said)
    output: list[str] = []

    def more() -> str:
        output.extend(line for line in (next(lines, ""),) if line)
        return "\n".join(output)

    @contextmanager
    def start() -> Iterator[Running]:
        if broken is not None:
            raise broken
        yield Running("127.0.0.1:1", more)

    return Server("one", {"empty_unary": holds, "large_unary": differs, "rpc_soak": fails}, start)


def test_each_case_has_a_row() -> None:
    asked = {name for server in SERVERS for name in server.cases}
    assert asked == set(interop.ROWS)
    assert set(TRITON_CASES) == set(TEST_CASES) - {"custom_metadata"}
    assert set(PROXY_CASES) == set(interop.ROWS)


def test_what_does_not_hold_is_said_and_a_server_that_complains_breaks_what_was_answered() -> None:
    found = interop.asked(server_of(), "own")
    wrong = {"large_unary": "Wrong: the answer is b'x', not b''", "rpc_soak": "StatusError: gone"}
    assert found == {"empty_unary": "holds"} | wrong
    complained = interop.asked(server_of("connected", "breach: te is None"), "own")
    assert complained["empty_unary"] == "answered; the server complains: te is None"


def test_a_server_that_is_absent_is_not_counted_and_one_that_ends_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = server_of(broken=NotHere("apt-get install -y one"))
    monkeypatch.setattr(interop, "SERVERS", (absent,))
    assert interop.asked(absent, "own") == {"": "apt-get install -y one"}
    assert interop.main([]) == 0
    monkeypatch.setattr(interop, "SERVERS", (server_of(broken=SetUpError("one ended")),))
    assert interop.main([]) == 1


def test_the_table_has_a_column_for_each_server() -> None:
    shown = interop.table({"a": {"empty_unary": "holds", "large_unary": "Wrong: x"}, "b": {"": "no b"}})
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:]}
    assert shown.split()[:2] == ["a", "b"]
    assert rows["empty_unary"] == ["holds", "not", "here"]
    assert rows["large_unary"] == ["BROKEN", "not", "here"]
    assert rows["rpc_soak"] == ["–", "not", "here"]
    assert len(rows) == len(cases.ROWS)


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("te", "gzip", "te is 'gzip'"),
        ("content-type", "text/plain", "content-type is 'text/plain'"),
        (":path", "EmptyCall", ":path is 'EmptyCall'"),
    ],
)
def test_requests_of_a_wrong_form_are_seen(name: str, value: str, wrong: str) -> None:
    assert breaches(RIGHT) == []
    assert breaches([(one, value if one == name else held) for one, held in RIGHT]) == [wrong]
    assert breaches([*RIGHT, ("te", "trailers")]) == ["a field of the protocol's is there twice"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("frames", "wrong"),
    [
        (frame(DATA, 0, 1, bytes(16_384)) * 5, "FlowControlError"),
        (frame(DATA, END_STREAM, 1, b"\0\0\0\0\x09x"), "a body of 6 bytes says 0000000009"),
        (frame(DATA, END_STREAM, 1, bytes(16_385)), "FrameTooLargeError"),
    ],
    ids=["window", "message", "frame"],
)
def test_the_strict_server_sees_what_breaks_the_protocol(frames: bytes, wrong: str) -> None:
    block = request_block(PATH, "127.0.0.1:1", False, 1, {})
    with started("strict", servers.python("strict")) as running:
        host, _, port = running.address.partition(":")
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(PREFACE + settings_frame({}) + frame(HEADERS, END_HEADERS, 1, block) + frames)
            assert eventually(running.breaches)
        assert running.breaches()[0].startswith(wrong)
        assert running.connections() == 1
