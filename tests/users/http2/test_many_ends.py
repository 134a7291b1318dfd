"""Calls that are given up by the thousand on one connection, as in an outage with short deadlines."""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from tests.users.http2.callers import Listener
from tests.users.http2.peer import answered
from users.endpoint import Endpoint
from users.http2.frames import CANCEL, DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW
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


def test_late_answers_to_thousands_that_were_given_up_harm_no_other(
    listener: Listener, channel: GrpcChannel
) -> None:
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


def test_thousands_that_are_given_up_at_a_full_socket_each_end_as_such(
    listener: Listener, channel: GrpcChannel
) -> None:
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
    new.whole(1)
    new.answer(1)
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
