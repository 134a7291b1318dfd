"""What a call of the suite's own gRPC says on the wire, and which phase and figure has what of its time.

The server is in the client's own event loop: each of its pauses begins when what comes before has happened.
"""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from tests.users.http2.callers import PICTURE_BYTES, Asked, Listener, callers, ended, kinds
from tests.users.http2.peer import framed, head, message, trailers
from users.http2 import figures
from users.http2.frames import (
    DATA,
    DEFAULT_WINDOW,
    ENABLE_PUSH,
    HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_WINDOW,
)
from users.transport.grpc import GrpcTransport

pytestmark = pytest.mark.system

PAUSE_S, PAUSE_NS = 0.1, 100_000_000


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    figures.take()
    yield made
    made.close()


def paused(ns: int) -> bool:
    """Whether it is a pause, at least: a busy machine adds to it."""
    return ns >= PAUSE_NS * 0.95


def longest(call: Asked, count: int) -> set[str]:
    """The names of a call's longest phases."""
    assert kinds(call) == ["good"]
    return set(sorted(call.phases_ns, key=call.phases_ns.__getitem__)[-count:])


def test_what_a_call_begins_with(listener: Listener) -> None:
    """In the order that gRPC's PROTOCOL-HTTP2.md asks for."""
    with callers(listener.address, timeout_s=20) as users:
        call = users.call()
        peer = listener.accept().greet()
        peer.whole(1)
        assert list(peer.streams[1].fields.items()) == [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/test.Plain/Call"),
            (":authority", listener.address),
            ("grpc-timeout", "20000m"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "grpc-python-inferswarm/0.1"),
            ("grpc-accept-encoding", "identity"),
        ]
        peer.answer(1)
        assert ended(call) == b"good"


def test_what_a_connection_begins_with(listener: Listener) -> None:
    """Answers need no table, and no window holds them back."""
    with callers(listener.address) as users:
        users.call()
        peer = listener.accept().greet()
        peer.whole(1)
        assert peer.theirs == {HEADER_TABLE_SIZE: 0, ENABLE_PUSH: 0, INITIAL_WINDOW_SIZE: MAX_WINDOW}
        assert peer.credit_of == {0: MAX_WINDOW, 1: MAX_WINDOW}


def test_the_phases_of_a_call_are_all_its_time(listener: Listener) -> None:
    """`connect` where a connection was made for it, the server's greeting included."""
    with callers(listener.address) as users:
        for stream in (1, 3):
            call = users.call()
            if stream == 1:
                peer = listener.accept()
                gevent.sleep(PAUSE_S)
                peer.greet()
            peer.whole(stream)
            gevent.sleep(PAUSE_S)
            peer.raw(head(stream))
            gevent.sleep(PAUSE_S)
            peer.raw(framed(DATA, 0, stream, message(b"good")), trailers(stream))
            assert ended(call) == b"good"
            assert paused(call.phases_ns["wait"])
            assert paused(call.phases_ns["receive"])
            assert ("connect" in call.phases_ns) is (stream == 1)
            assert longest(call, 3) >= {"wait", "receive"} | ({"connect"} if stream == 1 else set())


def test_a_closed_window_of_a_stream_is_flow_wait(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet({}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        gevent.sleep(PAUSE_S)
        peer.credit(1, PICTURE_BYTES)
        peer.whole(1)
        peer.answer(1)
        assert ended(call) == b"good"
        assert paused(call.phases_ns["flow_wait"])
        assert longest(call, 1) == {"flow_wait"}
        told = figures.take()
    assert told["stream_stalls"] == 1
    assert told["stream_stalled_ns"] == call.phases_ns["flow_wait"]
    assert told["connection_stalls"] == told["connection_stalled_ns"] == told["connection_waited_ns"] == 0
    assert told["stream_window_bytes"] == DEFAULT_WINDOW
    assert "streams_allowed" not in told


def test_a_closed_window_of_the_connection_is_flow_wait_of_all_who_stand_at_it(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = users.calls(2)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW})
        peer.until(lambda: peer.window == 0 and 3 in peer.streams)
        gevent.sleep(PAUSE_S)
        peer.credit(0, 2 * PICTURE_BYTES)
        for stream in (1, 3):
            peer.whole(stream)
            peer.answer(stream)
        assert kinds(*calls) == ["good"] * 2
        told = figures.take()
    assert all(paused(call.phases_ns["flow_wait"]) for call in calls)
    assert told["connection_stalls"] == 1
    assert paused(told["connection_stalled_ns"])
    assert told["connection_waited_ns"] == sum(call.phases_ns["flow_wait"] for call in calls)
    assert told["stream_stalls"] == told["stream_stalled_ns"] == 0


def test_a_full_socket_is_send(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1, 30_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.request(1)
        gevent.sleep(PAUSE_S)
        peer.whole(1)
        peer.answer(1)
        assert ended(call) == b"good"
        assert call.phases_ns["send"] >= PAUSE_NS * 0.95
        assert call.phases_ns["flow_wait"] == call.phases_ns["stream_wait"] == 0


def test_the_servers_limit_of_streams_is_stream_wait(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = [users.call(), users.call()]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 1})
        peer.whole(1)
        gevent.sleep(PAUSE_S)
        peer.answer(1)
        peer.whole(3)
        peer.answer(3)
        assert kinds(*calls) == ["good"] * 2
        told = figures.take()
    assert calls[0].phases_ns["stream_wait"] == 0
    assert paused(calls[1].phases_ns["stream_wait"])
    assert (told["stream_waits"], told["streams"], told["streams_allowed"]) == (1, 1, 1)


def test_figures_are_growths_and_end_with_the_connection(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        assert figures.take() == {}
        for streams in ((1, 3), (5, 7)):
            calls = [users.call(), users.call()]
            if streams == (1, 3):
                peer = listener.accept().greet()
            for stream in streams:
                peer.whole(stream)
                peer.answer(stream)
            assert kinds(*calls) == ["good"] * 2
            peer.quiet()
            told = figures.take()
            assert (told["connections"], told["streams"], told["retried"], told["goaways"]) == (1, 2, 0, 0)
            assert told["pings"] == (1 if streams == (1, 3) else 0), "at most one a second"
            assert ("ping_min_ns" in told) is (told["pings"] == 1)
            assert told["frames_sent"] >= 4
            assert told["frames_received"] >= 6
    assert figures.take() == {}


@pytest.mark.parametrize(("channels", "connections"), [("per-user", 3), ("shared", 1), ("pool:2", 2)])
def test_how_many_connections_users_have(channels: str, connections: int) -> None:
    assert GrpcTransport.connections(3, channels) == connections
