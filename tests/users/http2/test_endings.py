"""Calls that end before their answer: deadlines, kills, servers that hang up, hang, or say nothing."""

import errno
import gc
import os
from collections.abc import Callable

import gevent
import pytest

from tests.processes import eventually, free_port
from tests.users.http2.callers import PICTURE_BYTES, Listener, callers, ended, kinds
from tests.users.http2.peer import Peer, answered, framed, head, message, set_to
from users.endpoint import Endpoint
from users.errors import RequestError
from users.http2 import figures
from users.http2.connection import IDLE_NS
from users.http2.event_socket import Buffers
from users.http2.frames import CANCEL, DATA, DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW, PING
from users.transport.grpc import GrpcChannel
from users.transport.sockets import Socket

pytestmark = pytest.mark.system

SOON_S = 0.2
SendNow = Callable[[Socket, Buffers], int]


def endlessly(peer: Peer, said: bytes) -> None:
    """Send it again and again, and read nothing."""
    for _ in range(10_000):
        peer.raw(said)


def failure(channel: GrpcChannel) -> OSError | None:
    """With which a call of a channel ends."""
    try:
        channel.call("/test.Plain/Call", b"a request", 5.0)
    except OSError as error:
        return error
    return None


def failing_once(send_now: SendNow) -> SendNow:
    """The same, but for the first time."""
    faults = iter([OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))])

    def sent(socket: Socket, parts: Buffers) -> int:
        for fault in faults:
            raise fault
        return send_now(socket, parts)

    return sent


def files() -> int:
    """How many this process has open."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("size", [10, PICTURE_BYTES])
def test_a_deadline_resets_its_stream_and_the_connection_goes_on(listener: Listener, size: int) -> None:
    """In the middle of an upload, and when all is sent."""
    with callers(listener.address, timeout_s=SOON_S) as users:
        for stream in (1, 3, 5):
            (call,) = users.calls(1, size)
            if stream == 1:
                peer = listener.accept().greet()
            assert kinds(call) == ["timeout"]
            assert peer.cancelled(stream) == CANCEL
            assert peer.streams[stream].fields["grpc-timeout"] == "200m"
            assert peer.uploaded(stream) == (15 if size == 10 else DEFAULT_WINDOW)
            peer.credit(0, 1 << 20)
        call = users.call()
        peer.serve(7)
        assert ended(call) == b"good"


def test_a_call_that_is_killed_resets_its_stream(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = users.calls(2, 100)
        peer = listener.accept().greet()
        peer.whole(1)
        peer.whole(3)
        calls[0].kill()
        assert peer.cancelled(1) == CANCEL
        peer.raw(answered(1, b"too late"))
        peer.answer(3)
        assert ended(calls[1]) == b"good"


def test_a_call_that_is_killed_at_a_full_socket_leaves_whole_frames(listener: Listener) -> None:
    """What is laid out of it goes, and then its reset: the peer reads on without a fault."""
    with callers(listener.address, 2) as users:
        calls = users.calls(2, 30_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        gevent.sleep(0.2)
        calls[0].kill()
        assert len(peer.whole(3)) == 30_000_000
        assert peer.streams[1].reset == CANCEL
        assert peer.uploaded(1) < 30_000_000
        peer.answer(3)
        assert ended(calls[1]) == b"good"


def test_a_call_that_is_killed_while_it_waits_for_a_window_holds_no_other_up(listener: Listener) -> None:
    with callers(listener.address, 3) as users:
        calls = users.calls(3, 100_000)
        peer = listener.accept().greet()
        peer.until(lambda: peer.window == 0)
        calls[0].kill()
        peer.credit(0, 1 << 20)
        for stream in (3, 5):
            peer.request(stream)
            peer.credit(stream, 1 << 20)
            peer.serve(stream)
        assert kinds(*calls[1:]) == ["good", "good"]


def test_the_connections_credit_for_answers_that_nobody_waits_for_is_given_back(listener: Listener) -> None:
    """As much as a window of 2 GiB would hold otherwise, in few frames: of dead streams, and of padding."""
    with callers(listener.address) as users:
        call = users.call()
        peer = listener.accept().greet()
        peer.whole(1)
        call.kill()
        assert peer.cancelled(1) == CANCEL
        for _ in range(49):
            peer.pour(1, bytes(16_000), frames=64)
            peer.quiet(0.001)
        peer.quiet()
        assert MAX_WINDOW - (1 << 24) <= peer.credit_of[0] <= MAX_WINDOW, "less than 16 MiB of 51 MB are owed"
        call = users.call()
        peer.serve(3)
        assert ended(call) == b"good"


@pytest.mark.parametrize("begun", [b"", head(1), head(1) + framed(DATA, 0, 1, message(b"good")), b"\0\0"])
def test_a_server_that_hangs_up_resets_calls_and_the_next_connects(listener: Listener, begun: bytes) -> None:
    with callers(listener.address, 2) as users:
        calls = [users.call() for _ in range(2)]
        peer = listener.accept().greet()
        peer.whole(1)
        peer.whole(3)
        peer.raw(begun)
        peer.close()
        assert kinds(*calls) == ["reset", "reset"]
        call = users.call()
        peer = listener.accept().greet()
        peer.serve(1)
        assert ended(call) == b"good"


@pytest.mark.parametrize(("begun", "outcome"), [(b"", "good"), (head(3), "reset")])
def test_calls_that_meet_the_end_of_an_idle_connection_are_sent_once_more(
    listener: Listener, begun: bytes, outcome: str
) -> None:
    with callers(listener.address, 2) as users:
        call = users.call()
        peer = listener.accept().greet()
        peer.serve(1)
        assert ended(call) == b"good"
        peer.quiet()  # answers the PING
        gevent.sleep(IDLE_NS / 1e9 * 1.2)
        figures.take()
        calls = [users.call() for _ in range(2)]
        peer.whole(3)
        peer.whole(5)
        peer.raw(begun)
        peer.close()
        if outcome == "good":
            new = listener.accept().greet()
            new.serve(1, 3)
        assert kinds(*calls) == [outcome] * 2
        assert figures.take()["retried"] == (2 if outcome == "good" else 0)


def test_a_server_that_breaks_off_in_the_middle_of_an_upload(listener: Listener) -> None:
    """With bytes of ours unread, which the kernel answers with a reset."""
    with callers(listener.address, 2) as users:
        calls = users.calls(2, 20_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.next()
        peer.close()
        assert kinds(*calls) == ["reset", "reset"]


def test_an_answer_counts_whose_server_hangs_up_in_the_middle_of_the_upload(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1, 20_000_000)
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW)
        peer.request(1)
        peer.raw(answered(1, b"early"))
        gevent.sleep(0.05)
        assert ended(call) == b"early"
        peer.close()


def test_a_connection_not_written_to_is_given_up(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel was short of memory, once: the peer goes on, and has heard a part at most."""
    with callers(listener.address, timeout_s=SOON_S) as impatient, callers(listener.address) as users:
        first = users.call()
        peer = listener.accept().greet()
        peer.serve(1)
        assert ended(first) == b"good"
        monkeypatch.setattr(Socket, "send_now", failing_once(Socket.send_now))
        lost, call = impatient.call(), users.call()
        new = listener.accept().greet()
        new.serve(1)
        assert ended(call) == b"good"
        assert kinds(lost) == ["timeout"]
        peer.hung_up()


def test_a_server_that_hangs_up_while_idle_costs_no_call(listener: Listener) -> None:
    with callers(listener.address) as users:
        for _ in range(3):
            call = users.call()
            peer = listener.accept().greet()
            peer.serve(1)
            assert ended(call) == b"good"
            peer.close()


def test_a_server_without_settings_is_a_timeout(listener: Listener) -> None:
    with callers(listener.address, 2, timeout_s=SOON_S) as users:
        calls = [users.call() for _ in range(2)]
        peer = listener.accept()
        assert kinds(*calls) == ["timeout", "timeout"]
        peer.preface_only()
        peer.hung_up()


def test_a_server_that_hangs_is_a_timeout_and_its_connection_stays(listener: Listener) -> None:
    """It answers PINGs, as a hanging model's server does."""
    with callers(listener.address, 4, timeout_s=SOON_S) as users:
        calls = [users.call() for _ in range(4)]
        peer = listener.accept().greet()
        peer.quiet(2 * SOON_S)
        assert kinds(*calls) == ["timeout"] * 4
        assert [peer.streams[stream].reset for stream in (1, 3, 5, 7)] == [CANCEL] * 4


@pytest.mark.parametrize(
    "asked", [set_to({INITIAL_WINDOW_SIZE: 70_000}), framed(PING, 0, 0, bytes(8))], ids=["settings", "pings"]
)
def test_a_flood_that_asks_for_answers_and_reads_none_is_ended(listener: Listener, asked: bytes) -> None:
    with callers(listener.address) as users:
        call = users.call()
        peer = listener.accept(receives_bytes=4_096).greet()
        peer.whole(1)
        with pytest.raises(OSError):
            endlessly(peer, asked * 1_000)
        assert kinds(call) == ["bad-reply"]


def test_a_flood_of_settings_that_is_read_holds_nobody_up(listener: Listener) -> None:
    with callers(listener.address, timeout_s=10) as users:
        call = users.call()
        peer = listener.accept().greet()
        peer.whole(1)
        for _ in range(20_000):
            peer.set({INITIAL_WINDOW_SIZE: 70_000})
        peer.answer(1)
        assert ended(call) == b"good"
        peer.until(lambda: peer.acks == 20_001)


def test_a_server_of_http_1_1_is_told_apart(listener: Listener) -> None:
    with callers(listener.address, timeout_s=5) as users:
        call = users.call()
        listener.accept().raw(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        assert kinds(call) == ["bad-reply"]
        error = ended(call)
        assert isinstance(error, RequestError)
        assert "HTTP/1.1" in error.detail


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\x00\x02\x02\x46", b"\0" * 64])
def test_a_server_of_something_else_is_a_bad_reply(listener: Listener, said: bytes) -> None:
    with callers(listener.address, timeout_s=5) as users:
        call = users.call()
        peer = listener.accept()
        peer.raw(said)
        gevent.sleep(0.02)
        peer.close()
        assert kinds(call)[0] in ("bad-reply", "reset")


def test_nobody_there() -> None:
    with callers(f"127.0.0.1:{free_port()}") as users:
        assert kinds(users.call(), users.call()) == ["refused", "refused"]


def test_closing_a_channel_ends_its_calls(listener: Listener) -> None:
    channel = GrpcChannel(Endpoint("x", "triton", "grpc", "fp32", listener.address))
    call = gevent.spawn(failure, channel)
    gevent.sleep(0)
    peer = listener.accept().greet()
    peer.whole(1)
    channel.close()
    assert isinstance(call.get(timeout=1), ConnectionAbortedError)
    peer.hung_up()


def test_no_end_leaves_a_file_open(listener: Listener) -> None:
    """Nor a connection in the figures."""
    gc.collect()
    before = files()
    for end in ("answer", "hang up", "time", "kill", "garbage", "leave"):
        with callers(listener.address, timeout_s=SOON_S) as users:
            call = users.call()
            peer = listener.accept().greet()
            peer.whole(1)
            if end == "answer":
                peer.answer(1)
            elif end == "hang up":
                peer.close()
            elif end == "garbage":
                peer.raw(framed(DATA, 0, 77, b"?"))
            elif end == "leave":
                peer.leave(1)
                peer.answer(1)
            elif end == "kill":
                call.kill()
            call.join()
        if end != "hang up":
            peer.hung_up()
    assert eventually(lambda: files() <= before)
    figures.take()
    assert figures.take() == {}
