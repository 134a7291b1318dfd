"""Calls that are given up by the thousand on one connection, as in an outage with short deadlines."""

from collections.abc import Iterator

import gevent
import pytest

from tests.users.http2.callers import Listener
from tests.users.http2.peer import answered
from users.endpoint import Endpoint
from users.http2.call import Call
from users.http2.frames import CANCEL, DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW
from users.http2.sender import FIFO, FrameSender
from users.http2.streams import REMEMBERED, Streams
from users.transport.grpc import GrpcChannel

pytestmark = pytest.mark.system

METHOD = "/test.Plain/Call"


@pytest.fixture
def channel(listener: Listener) -> Iterator[GrpcChannel]:
    """To the listener, not yet connected."""
    made = GrpcChannel(Endpoint("x", "triton", "grpc", "fp32", listener.address))
    yield made
    made.close()


def begin(channel: GrpcChannel, body: bytes = b"a request") -> gevent.Greenlet:
    """A call in a greenlet."""
    return gevent.spawn(channel.call, METHOD, body, 20.0)


def test_late_answers_to_thousands_given_up_harm_no_other(listener: Listener, channel: GrpcChannel) -> None:
    """A server that has hung for a while answers all, for it has not read of the resets yet."""
    calls = [begin(channel) for _ in range(3_000)]
    gevent.sleep(0)
    peer = listener.accept().greet()
    peer.whole(2 * len(calls) - 1)
    gevent.killall(calls)
    kept = begin(channel)
    for number in range(len(calls)):
        peer.raw(answered(2 * number + 1, b"late"))
    peer.whole(2 * len(calls) + 1)
    peer.answer(2 * len(calls) + 1)
    assert kept.get(timeout=20).body == b"good"
    assert [one.reset for one in peer.streams.values()] == [CANCEL] * 3_000 + [None]


@pytest.mark.parametrize("first", [1, 11, 2_003])
def test_a_thousand_resets_later_the_first_one_is_known(first: int) -> None:
    """And those before it by id: the last frames of their answers may still come. Calls end in any order."""
    streams = Streams(FrameSender(FIFO, lambda: 0), 1)
    calls = [Call(b"a block", b"", 9) for _ in range(REMEMBERED + 2)]
    for call in calls:
        streams.add(call)
    for call in sorted(calls, key=lambda one: (one.stream != first, one.stream)):
        streams.drop(call, None, CANCEL)
    assert [number for number in range(1, 2 * len(calls), 2) if not streams.was_reset(number)] == []
    assert not streams.was_reset(2 * len(calls) + 1)


def test_thousands_given_up_at_a_full_socket_end_as_such(listener: Listener, channel: GrpcChannel) -> None:
    """The peer reads nothing of what it is told; when it has gone, another connection is made."""
    large = begin(channel, bytes(30_000_000))
    peer = listener.accept(receives_bytes=4_096).greet(
        {INITIAL_WINDOW_SIZE: MAX_WINDOW}, MAX_WINDOW - DEFAULT_WINDOW
    )
    gevent.sleep(0.1)
    given_up = [gevent.spawn(timed_out, channel) for _ in range(12_000)]
    gevent.joinall(given_up, raise_error=True)
    assert {call.value for call in given_up} <= {"Timeout", "ConnectionError"}
    assert not large.ready() or large.exception is not None
    large.kill()
    peer.close()
    after = begin(channel)
    new = listener.accept().greet()
    new.serve(1)
    assert after.get(timeout=20).body == b"good"


def timed_out(channel: GrpcChannel) -> str:
    """How a call ends that is given little time."""
    try:
        channel.call(METHOD, b"a request", 0.3)
    except gevent.Timeout:
        return "Timeout"
    except ConnectionError:
        return "ConnectionError"
    except Exception as error:
        return repr(error)
    return "an answer"
