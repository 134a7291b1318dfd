"""What a call of the suite's own gRPC says on the wire, and which phase and figure has what of its time.

The server is in the client's own event loop: each of its pauses begins when what comes before has happened.
"""

import time
from collections.abc import Iterator
from contextlib import closing

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
    REFUSED_STREAM,
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
            assert call.response_bytes == len(b"good")
            assert longest(call, 3) >= {"wait", "receive"} | ({"connect"} if stream == 1 else set())


def test_all_who_wait_for_a_connection_have_connect(listener: Listener) -> None:
    """Also those who do not make it."""
    with callers(listener.address, 3) as users:
        calls = [users.call() for _ in range(3)]
        peer = listener.accept()
        gevent.sleep(PAUSE_S)
        peer.greet()
        peer.serve(1, 3, 5)
        assert kinds(*calls) == ["good"] * 3
    assert all(paused(call.phases_ns.get("connect", 0)) for call in calls)


def test_an_answer_that_begins_at_a_closed_window_has_no_time_twice(listener: Listener) -> None:
    """The window stays closed behind its beginning, too; its end makes the rest of the request useless."""
    began_ns = time.perf_counter_ns()
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        gevent.sleep(PAUSE_S)
        peer.raw(head(1))
        gevent.sleep(PAUSE_S)
        peer.end(1, framed(DATA, 0, 1, message(b"good")), trailers(1))
        assert ended(call) == b"good"
        elapsed_ns = time.perf_counter_ns() - began_ns
    assert call.phases_ns["flow_wait"] >= 2 * PAUSE_NS * 0.95
    assert sum(call.phases_ns.values()) <= elapsed_ns


def test_a_call_that_is_begun_anew_keeps_its_waits_for_streams(listener: Listener) -> None:
    """Of both connections."""
    with callers(listener.address, 2) as users:
        first, second = users.call(), users.call()
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 1})
        peer.whole(1)
        gevent.sleep(PAUSE_S)
        peer.leave(last=1)
        new = listener.accept().greet({MAX_CONCURRENT_STREAMS: 0})
        gevent.sleep(PAUSE_S)
        new.set({MAX_CONCURRENT_STREAMS: 1})
        new.serve(1)
        peer.answer(1)
        assert kinds(first, second) == ["good"] * 2
        assert figures.take()["retried"] == 1
    assert second.phases_ns["stream_wait"] >= 2 * PAUSE_NS * 0.95


def test_a_call_that_is_begun_anew_keeps_its_wait_for_windows(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        gevent.sleep(PAUSE_S)
        peer.kill(1, REFUSED_STREAM)
        peer.set({INITIAL_WINDOW_SIZE: MAX_WINDOW})
        peer.credit(0, 2 * PICTURE_BYTES)
        peer.serve(3)
        assert ended(call) == b"good"
        assert figures.take()["retried"] == 1
    assert paused(call.phases_ns["flow_wait"])


def test_a_closed_window_of_a_stream_is_flow_wait(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet({}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        gevent.sleep(PAUSE_S)
        peer.credit(1, PICTURE_BYTES)
        peer.serve(1)
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
    with callers(listener.address, 3) as users:
        calls = users.calls(2)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW})
        peer.until(lambda: peer.window == 0 and 3 in peer.streams)
        gevent.sleep(PAUSE_S)
        began_ns = time.perf_counter_ns()
        calls.append(users.call())
        peer.until(lambda: 5 in peer.streams)
        peer.credit(0, 3 * PICTURE_BYTES)
        peer.serve(1, 3, 5)
        assert kinds(*calls) == ["good"] * 3
        assert calls[2].phases_ns["flow_wait"] <= time.perf_counter_ns() - began_ns, "from its own turn on"
        told = figures.take()
    assert all(paused(call.phases_ns["flow_wait"]) for call in calls[:2])
    assert told["connection_stalls"] == 1
    assert paused(told["connection_stalled_ns"])
    assert told["connection_waited_ns"] == sum(call.phases_ns["flow_wait"] for call in calls)
    assert told["stream_stalls"] == told["stream_stalled_ns"] == 0


def test_windows_of_one_size_are_closed_for_one_call_by_its_streams(
    listener: Listener,
) -> None:
    """As grpc-go's and others' are at the start: more connections would be of no help."""
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        for number in range(1, 10):
            peer.quiet()
            assert peer.uploaded(1) == number * DEFAULT_WINDOW
            peer.credit(0, DEFAULT_WINDOW)
            peer.credit(1, DEFAULT_WINDOW)
        peer.serve(1)
        assert ended(call) == b"good"
        told = figures.take()
    assert told["stream_stalls"] == 9
    assert told["stream_stalled_ns"] == call.phases_ns["flow_wait"] > 0
    assert told["connection_stalls"] == told["connection_stalled_ns"] == told["connection_waited_ns"] == 0


def test_a_full_socket_is_send(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1, 30_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.request(1)
        gevent.sleep(PAUSE_S)
        peer.serve(1)
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
        peer.serve(3)
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
                peer.serve(stream)
            assert kinds(*calls) == ["good"] * 2
            peer.quiet()
            told = figures.take()
            assert (told["connections"], told["streams"], told["retried"], told["goaways"]) == (1, 2, 0, 0)
            assert told["pings"] == (1 if streams == (1, 3) else 0), "at most one a second"
            assert ("ping_min_ns" in told) is (told["pings"] == 1)
            assert told["frames_sent"] >= 4
            assert told["frames_received"] >= 6
    assert figures.take() == {}


def test_the_least_window_is_of_servers_that_have_said_theirs(listener: Listener) -> None:
    """A connection that waits for its SETTINGS is not counted."""
    with closing(Listener()) as other, callers(listener.address) as users, callers(other.address) as others:
        calls = [users.call()]
        peers = [listener.accept().greet({INITIAL_WINDOW_SIZE: 4 << 20})]
        peers[0].whole(1)
        calls.append(others.call())
        peers.append(other.accept())
        peers[1].preface_only()
        told = figures.take()
        assert (told["connections"], told["stream_window_bytes"]) == (1, 4 << 20)
        peers[1].set({INITIAL_WINDOW_SIZE: 1 << 20})
        peers[1].whole(1)
        told = figures.take()
        assert (told["connections"], told["stream_window_bytes"]) == (2, 1 << 20)
        for peer in peers:
            peer.answer(1)
        assert kinds(*calls) == ["good"] * 2


@pytest.mark.parametrize(("channels", "connections"), [("per-user", 3), ("shared", 1), ("pool:2", 2)])
def test_how_many_connections_users_have(channels: str, connections: int) -> None:
    assert GrpcTransport.connections(3, channels) == connections
