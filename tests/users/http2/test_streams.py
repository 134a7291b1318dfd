"""How many calls a server lets in, and which calls are begun anew where it has not processed them."""

from unittest.mock import ANY

import gevent
import pytest

from tests.users.http2.callers import Asked, Callers, Listener, callers, ended, kinds
from tests.users.http2.peer import Peer, answered, framed
from users.endpoint import Endpoint
from users.errors import RequestError
from users.http2.frames import (
    CANCEL,
    DEFAULT_WINDOW,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    INITIAL_WINDOW_SIZE,
    INTERNAL_ERROR,
    MAX_CONCURRENT_STREAMS,
    MAX_WINDOW,
    NO_ERROR,
    REFUSED_STREAM,
    SETTINGS,
)
from users.transport.grpc import GrpcChannel

pytestmark = pytest.mark.system


def begun(listener: Listener, users: Callers, count: int) -> tuple[Peer, list[Asked]]:
    """A connection on which so many calls have been sent whole, and the calls."""
    calls = [users.call() for _ in range(count)]
    peer = listener.accept().greet()
    for number in range(count):
        peer.whole(2 * number + 1)
    return peer, calls


def test_four_callers_at_a_limit_of_one(listener: Listener) -> None:
    """Each is let in when the one before has ended; the peer counts."""
    with callers(listener.address, 4) as users:
        calls = [users.call(bytes((number,))) for number in range(4)]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 1})
        for number, stream in enumerate((1, 3, 5, 7)):
            assert peer.whole(stream) == bytes((number,))
            peer.quiet(0.02)
            assert max(peer.streams) == stream
            peer.answer(stream)
        assert kinds(*calls) == ["good"] * 4
        waited = [call.phases_ns["stream_wait"] for call in calls]
        assert waited[0] == 0
        assert waited == sorted(waited)
        assert waited[3] > 50_000_000, "ns: three times 20 ms and more"


def test_a_limit_lowered_in_the_middle_lets_none_in_until_fewer_are_open(listener: Listener) -> None:
    with callers(listener.address, 5) as users:
        calls = [users.call() for _ in range(4)]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 4})
        for stream in (1, 3, 5, 7):
            peer.whole(stream)
        peer.set({MAX_CONCURRENT_STREAMS: 1})
        peer.until(lambda: peer.acks == 2)
        calls.append(users.call())
        for stream in (1, 5, 7):
            peer.quiet(0.02)
            assert max(peer.streams) == 7
            peer.answer(stream)
        peer.quiet(0.02)
        assert max(peer.streams) == 7, "one is still open, and that is all that are allowed"
        peer.answer(3)
        peer.serve(9)
        assert kinds(*calls) == ["good"] * 5


def test_a_limit_of_none_lets_in_when_it_is_raised(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = [users.call() for _ in range(2)]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 0})
        peer.quiet()
        assert peer.streams == {}
        peer.set({MAX_CONCURRENT_STREAMS: 2})
        peer.serve(1, 3)
        assert kinds(*calls) == ["good"] * 2


def test_who_waits_for_a_stream_until_his_time_is_up_sends_nothing(listener: Listener) -> None:
    with callers(listener.address, 1, timeout_s=0.2) as impatient, callers(listener.address) as users:
        first = users.call()
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 1})
        peer.whole(1)
        assert kinds(impatient.call()) == ["timeout"]
        peer.answer(1)
        assert ended(first) == b"good"
        last = users.call()
        peer.serve(3)
        assert ended(last) == b"good"
        assert peer.quiet() == []


def test_an_early_answer_frees_its_stream_before_the_next_begins(listener: Listener) -> None:
    """The upload that is of no use any more is reset first, or there would be two at a limit of one."""
    with callers(listener.address, 2) as users:
        calls = users.calls(2, 100_000)
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 1})
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        peer.answer(1)
        peer.request(3)
        assert peer.streams[1].reset in (NO_ERROR, CANCEL)
        peer.credit(0, 1 << 20)
        peer.credit(3, 1 << 20)
        peer.serve(3)
        assert kinds(*calls) == ["good"] * 2


def test_goaway_finishes_what_it_allows_and_begins_the_others_anew(listener: Listener) -> None:
    with callers(listener.address, 3) as users:
        peer, calls = begun(listener, users, 3)
        peer.leave(last=3)
        new = listener.accept().greet()
        assert new.whole(1) == b"a request"
        peer.answer(1, b"first")
        new.answer(1, b"third")
        assert ended(calls[0]) == b"first"
        assert not calls[1].ready()
        peer.answer(3, b"second")
        assert [ended(call) for call in calls] == [b"first", b"second", b"third"]
        peer.hung_up()
        later = users.call()
        new.serve(3)
        assert ended(later) == b"good"


def test_goaway_of_all_streams_and_then_the_true_one(listener: Listener) -> None:
    """How gRPC's servers leave: a warning, a PING, and after its echo how far they got."""
    with callers(listener.address, 3) as users:
        peer, calls = begun(listener, users, 2)
        peer.leave(last=MAX_WINDOW)
        peer.ping(b"leaving.")
        peer.until(lambda: peer.pongs == 1)
        calls.append(users.call(b"later"))
        new = listener.accept().greet()
        assert new.whole(1) == b"later"
        peer.leave(last=1)
        assert new.whole(3) == b"a request"
        peer.answer(1, b"first")
        peer.hung_up()
        new.answer(3, b"second")
        new.answer(1, b"third")
        assert [ended(call) for call in calls] == [b"first", b"second", b"third"]


def test_goaway_takes_those_that_wait_for_a_stream_elsewhere(listener: Listener) -> None:
    """None of them may begin on the connection that ends; the peer says so."""
    with callers(listener.address, 4) as users:
        calls = [users.call() for _ in range(4)]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 2})
        peer.whole(1)
        peer.whole(3)
        peer.leave(last=1)
        new = listener.accept().greet()
        new.serve(1, 3, 5)
        peer.answer(1)
        peer.hung_up()
        assert kinds(*calls) == ["good"] * 4


def test_goaway_while_idle_costs_no_call(listener: Listener) -> None:
    with callers(listener.address) as users:
        for _ in range(3):
            peer, (call,) = begun(listener, users, 1)
            peer.answer(1)
            assert ended(call) == b"good"
            peer.leave(last=1)
            peer.hung_up()


def test_a_server_that_always_leaves_at_once_is_not_asked_for_ever(listener: Listener) -> None:
    with callers(listener.address) as users:
        call = users.call()
        connections = 0
        while not call.ready():
            with gevent.Timeout(0.2, False):
                listener.accept().raw(framed(SETTINGS, 0, 0), framed(GOAWAY, 0, 0, bytes(8)))
                connections += 1
                assert connections < 10
        assert (kinds(call), connections) == (["reset"], 5)
        assert ended(call).code == ""  # type: ignore[union-attr]


def test_a_call_that_two_servers_leave_without_processing_it_is_reset(listener: Listener) -> None:
    """No answer has refused it."""
    with callers(listener.address) as users:
        call = users.call()
        for _ in range(2):
            peer = listener.accept().greet()
            peer.whole(1)
            peer.leave(last=0)
        error = ended(call)
        assert isinstance(error, RequestError)
        assert (str(error.kind), error.code) == ("reset", "")
        assert "GOAWAY, HTTP/2 error 0" in error.detail


def test_a_newcomer_who_hears_goaway_tells_those_who_wait_for_a_stream(listener: Listener) -> None:
    """He reads before the loop does, since nothing is under way there."""
    with callers(listener.address, 2) as users:
        calls = [users.call()]
        peer = listener.accept().greet({MAX_CONCURRENT_STREAMS: 0})
        peer.quiet()
        peer.leave(last=0)
        calls.append(users.call())
        new = listener.accept().greet()
        new.serve(1, 3)
        assert kinds(*calls) == ["good"] * 2


@pytest.mark.parametrize("again", [False, True])
def test_a_refused_stream_is_begun_anew_once(listener: Listener, again: bool) -> None:
    with callers(listener.address) as users:
        peer, (call,) = begun(listener, users, 1)
        peer.kill(1, REFUSED_STREAM)
        assert peer.whole(3) == b"a request"
        if not again:
            peer.answer(3)
            assert ended(call) == b"good"
            return
        peer.kill(3, REFUSED_STREAM)
        assert kinds(call) == ["reset"]
        assert ended(call).code == ""  # type: ignore[union-attr]
        call = users.call()
        peer.serve(5)
        assert ended(call) == b"good"


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        (NO_ERROR, "server-error", "INTERNAL"),
        (INTERNAL_ERROR, "server-error", "INTERNAL"),
        (ENHANCE_YOUR_CALM, ANY, "RESOURCE_EXHAUSTED"),
        (CANCEL, ANY, ANY),
        (0xDEADBEEF, "server-error", "INTERNAL"),
    ],
)
def test_a_reset_is_of_its_call_alone(listener: Listener, code: int, kind: object, name: object) -> None:
    with callers(listener.address, 2) as users:
        peer, calls = begun(listener, users, 2)
        peer.kill(1, code)
        assert kinds(calls[0]) == [kind]
        assert ended(calls[0]).code == name  # type: ignore[union-attr]
        peer.answer(3)
        assert ended(calls[1]) == b"good"


def test_a_reset_without_error_behind_an_early_answer_stops_the_upload(listener: Listener) -> None:
    """As nginx and others do: the answer counts."""
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        peer.raw(answered(1, b"early"))
        peer.kill(1, NO_ERROR)
        assert ended(call) == b"early"
        peer.credit(0, 1 << 20)
        peer.quiet()
        assert peer.uploaded(1) == DEFAULT_WINDOW
        later = users.call()
        peer.serve(3)
        assert ended(later) == b"good"


def test_an_early_answer_alone_stops_the_upload_too(listener: Listener) -> None:
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.until(lambda: peer.uploaded(1) == DEFAULT_WINDOW)
        peer.answer(1, b"early")
        assert ended(call) == b"early"
        peer.quiet()
        assert peer.streams[1].reset in (NO_ERROR, CANCEL)
        peer.credit(0, 1 << 20)
        later = users.call()
        peer.serve(3)
        assert ended(later) == b"good"


def test_stream_ids_that_run_out_cost_no_call(listener: Listener) -> None:
    endpoint = Endpoint("x", "triton", "grpc", "fp32", listener.address)
    channel = GrpcChannel(endpoint, first_stream=MAX_WINDOW - 4)
    calls = [gevent.spawn(channel.call, "/test.Plain/Call", b"a request", 5.0) for _ in range(3)]
    peer = listener.accept().greet({INITIAL_WINDOW_SIZE: 1 << 20})
    for stream in (MAX_WINDOW - 4, MAX_WINDOW - 2, MAX_WINDOW):
        assert peer.whole(stream) == b"a request"
    calls.append(gevent.spawn(channel.call, "/test.Plain/Call", b"another", 5.0))
    new = listener.accept().greet()
    assert new.whole(MAX_WINDOW - 4) == b"another"
    new.answer(MAX_WINDOW - 4)
    for stream in (MAX_WINDOW - 2, MAX_WINDOW, MAX_WINDOW - 4):
        peer.answer(stream)
    assert [call.get(timeout=5).body for call in calls] == [b"good"] * 4
    peer.hung_up()
    channel.close()
