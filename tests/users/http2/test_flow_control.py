"""A server's windows and frame sizes, also where they change in the middle of an upload."""

import gevent
import pytest

from tests.users.http2.callers import PICTURE_BYTES, Listener, callers, ended, kinds
from tests.users.http2.peer import Peer
from users.http2.call import Call
from users.http2.frames import (
    DEFAULT_FRAME_BYTES,
    DEFAULT_WINDOW,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
)
from users.http2.sender import FAIR, FIFO, FrameSender

pytestmark = pytest.mark.system

WHOLE = PICTURE_BYTES + 5
"""A picture with the prefix of its message."""


def test_windows_of_the_start_hold_a_body_back_until_both_are_open(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.quiet()
        assert peer.uploaded(1) == DEFAULT_WINDOW
        peer.credit(1, WHOLE)
        peer.quiet()
        assert peer.uploaded(1) == DEFAULT_WINDOW, "the connection's window is closed"
        peer.credit(0, 100)
        peer.quiet()
        assert peer.uploaded(1) == DEFAULT_WINDOW + 100
        peer.credit(0, WHOLE)
        assert peer.whole(1) == bytes((1,)) * PICTURE_BYTES
        peer.answer(1)
        assert ended(call) == b"good"


def test_a_window_lowered_in_the_middle_is_negative_until_credit_fills_it(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 200_000}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.quiet()
        assert peer.uploaded(1) == 200_000
        peer.set({INITIAL_WINDOW_SIZE: 50_000})
        peer.until(lambda: peer.acks == 2)
        assert peer.streams[1].window == -150_000
        for credit, more in ((149_999, 0), (1, 0), (10_000, 10_000)):
            before = peer.uploaded(1)
            peer.credit(1, credit)
            peer.quiet()
            assert peer.uploaded(1) - before == more
        peer.set({INITIAL_WINDOW_SIZE: MAX_WINDOW})
        peer.serve(1)
        assert ended(call) == b"good"


def test_a_window_raised_by_settings_alone_lets_the_body_go_on(listener: Listener) -> None:
    """Those that wait must be woken by SETTINGS as by WINDOW_UPDATE."""
    with callers(listener.address, 2) as users:
        calls = users.calls(2)
        peer = listener.accept().greet({}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.quiet()
        assert [peer.uploaded(stream) for stream in (1, 3)] == [DEFAULT_WINDOW, DEFAULT_WINDOW]
        peer.set({INITIAL_WINDOW_SIZE: WHOLE})
        peer.serve(1, 3)
        assert kinds(*calls) == ["good", "good"]


@pytest.mark.parametrize("scheduling", [FIFO, FAIR])
def test_at_a_connections_window_all_bodies_arrive_whole(listener: Listener, scheduling: str) -> None:
    with callers(listener.address, 4, scheduling=scheduling) as users:
        calls = users.calls(4)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW})
        for _ in range(4 * WHOLE // 40_000 + 1):
            peer.quiet(0.001)
            peer.credit(0, 40_000)
        for number in range(4):
            stream = 2 * number + 1
            assert peer.whole(stream) == bytes((number + 1,)) * PICTURE_BYTES
            peer.answer(stream, bytes((number,)))
        assert [ended(call) for call in calls] == [bytes((number,)) for number in range(4)]


def test_a_window_opened_byte_by_byte(listener: Listener) -> None:
    with callers(listener.address) as users:
        call = users.call(b"0123456789")
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 0})
        peer.request(1)
        for _ in range(15):
            assert not peer.streams[1].ended
            peer.credit(1, 1)
            peer.quiet(0.005)
        assert peer.whole(1) == b"0123456789"
        peer.answer(1)
        assert ended(call) == b"good"


def test_an_empty_request_needs_a_window_for_its_prefix_alone(listener: Listener) -> None:
    with callers(listener.address) as users:
        call = users.call(b"")
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 5})
        assert peer.whole(1) == b""
        peer.answer(1)
        assert ended(call) == b"good"


def test_a_body_goes_on_in_frames_of_the_size_allowed(listener: Listener) -> None:
    """Raised and lowered in the middle of one body."""
    with callers(listener.address) as users:
        (call,) = users.calls(1, 4_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 1 << 20}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.quiet()
        assert max(size for _, size in peer.sent) == DEFAULT_FRAME_BYTES
        peer.sent.clear()
        peer.set({MAX_FRAME_SIZE: 100_000})
        peer.until(lambda: peer.acks == 2)
        peer.credit(1, 1 << 20)
        peer.quiet()
        assert max(size for _, size in peer.sent) == 100_000
        peer.sent.clear()
        peer.set({MAX_FRAME_SIZE: DEFAULT_FRAME_BYTES})
        peer.until(lambda: peer.acks == 3)
        peer.credit(1, 2 << 20)
        assert len(peer.whole(1)) == 4_000_000
        assert max(size for _, size in peer.sent) == DEFAULT_FRAME_BYTES
        peer.answer(1)
        assert ended(call) == b"good"


def test_a_frame_size_of_16_mib_is_not_used_whole(listener: Listener) -> None:
    """Between frames a PING can be answered."""
    with callers(listener.address) as users:
        (call,) = users.calls(1, 6_000_000)
        given = {INITIAL_WINDOW_SIZE: MAX_WINDOW, MAX_FRAME_SIZE: (1 << 24) - 1}
        peer = listener.accept().greet(given, MAX_WINDOW - DEFAULT_WINDOW)
        assert len(peer.whole(1)) == 6_000_000
        assert DEFAULT_FRAME_BYTES <= max(size for _, size in peer.sent) <= 1 << 20
        peer.answer(1)
        assert ended(call) == b"good"


def test_a_ping_is_answered_at_once_while_a_window_is_closed(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.quiet()
        for payload in (b"12345678", bytes(8), b"\xff" * 8):
            peer.ping(payload)
        with gevent.Timeout(1):
            peer.until(lambda: peer.pongs == 3)
        assert peer.uploaded(1) == DEFAULT_WINDOW
        allow(peer, 1)
        peer.serve(1)
        assert ended(call) == b"good"


def test_a_ping_goes_before_the_rest_of_a_large_body_at_a_full_socket(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1, 60_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        gevent.sleep(0.3)
        peer.ping(b"12345678")
        gevent.sleep(0.05)
        peer.until(lambda: peer.pongs == 1)
        assert peer.uploaded(1) < 30_000_000, "of what the kernel had not taken"
        assert len(peer.whole(1)) == 60_000_000
        peer.answer(1)
        assert ended(call) == b"good"


def test_first_come_first_served(listener: Listener) -> None:
    with callers(listener.address, 4, scheduling=FIFO) as users:
        calls = users.calls(4)
        peer = all_held(listener, (1, 3, 5, 7))
        peer.serve(1, 3, 5, 7)
        assert [stream for stream, _ in peer.sent] == sorted(stream for stream, _ in peer.sent)
        assert kinds(*calls) == ["good"] * 4


def test_fair_turns_are_of_one_frame(listener: Listener) -> None:
    with callers(listener.address, 4, scheduling=FAIR) as users:
        calls = users.calls(4)
        peer = all_held(listener, (1, 3, 5, 7))
        peer.serve(1, 3, 5, 7)
        in_turn = [1, 3, 5, 7] * (WHOLE // DEFAULT_FRAME_BYTES + 1)
        assert peer.sent == [(stream, DEFAULT_FRAME_BYTES) for stream in in_turn[:-4]] + [
            (stream, WHOLE % DEFAULT_FRAME_BYTES) for stream in in_turn[-4:]
        ]
        assert kinds(*calls) == ["good"] * 4


def test_a_closed_window_of_the_first_lets_the_next_send(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = users.calls(2)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 100_000}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.quiet()
        assert [peer.uploaded(stream) for stream in (1, 3)] == [100_000, 100_000]
        peer.credit(3, WHOLE)
        peer.serve(3)
        assert ended(calls[1]) == b"good"
        peer.credit(1, WHOLE)
        peer.serve(1)
        assert ended(calls[0]) == b"good"


def test_a_call_that_has_moved_has_no_stamp_of_the_connection_that_it_left() -> None:
    """Its end is laid out there, goes when the socket takes more, and means nothing any more."""
    call = Call(b"a block", bytes(50_000), 9)
    call.stream = 1
    sender = FrameSender(FIFO, lambda: 0)
    sender.begin(call)
    assert not sender.push(lambda parts: 10_000)
    assert (call.left, call.sent_ns) == (0, 0)
    sender.drop(call)
    call.begin_again()
    assert sender.push(lambda parts: sum(map(len, parts)))
    assert sender.idle
    assert call.sent_ns == 0


def allow(peer: Peer, stream: int) -> None:
    """All that a stream may want."""
    peer.credit(0, 1 << 24)
    peer.credit(stream, 1 << 24)


def all_held(listener: Listener, streams: tuple[int, ...]) -> Peer:
    """A connection on which these have begun, and may then send all at once."""
    given = {INITIAL_WINDOW_SIZE: 0, MAX_FRAME_SIZE: 1 << 20}
    peer = listener.accept().greet(given, MAX_WINDOW - DEFAULT_WINDOW)
    for stream in streams:
        peer.request(stream)
    peer.set({INITIAL_WINDOW_SIZE: MAX_WINDOW})
    return peer
