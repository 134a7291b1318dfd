"""How grpcio lets large requests on one connection take turns: what `--grpc-scheduling`'s default imitates.

A server records the client's DATA frames in the order in which they come. `mean_end` is when calls end, as a
share of all bytes: with N equal calls (N + 1) / 2N where each is sent whole before the next, and nearly 1
where they share the connection evenly.
"""

import itertools
import time
from collections.abc import Callable

import gevent
import pytest

from tests.users.http2.callers import PICTURE_BYTES, Listener, callers, kinds
from tests.users.http2.peer import Peer
from users.http2.frames import DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW

pytestmark = [pytest.mark.system, pytest.mark.slow]

LARGE_BYTES = 8_000_000
WARM_UP = 1
"""The stream of a first, small call: by its end the client has heard the server's SETTINGS."""
Reader = Callable[[Peer, int], None]


def at_once(peer: Peer, calls: int) -> None:
    """Read as fast as it comes, and answer each call at its end."""
    answered = {WARM_UP}
    while len(answered) <= calls:
        peer.next()
        for stream in [number for number, one in peer.streams.items() if one.ended]:
            if stream not in answered:
                answered.add(stream)
                peer.answer(stream)


def slowly(peer: Peer, calls: int) -> None:
    """As `at_once`, but no more than 20 MB/s: the client's socket is full nearly all the time."""
    began, read = time.monotonic(), peer.read

    def paced(seconds: float) -> bool:
        came = read(seconds)
        done = sum(size for _, size in peer.sent) / 20e6
        gevent.sleep(max(0.0, began + done - time.monotonic()))
        return came

    peer.read = paced  # type: ignore[method-assign]
    at_once(peer, calls)


def by_credit(peer: Peer, calls: int) -> None:
    """As `at_once`; when the connection's window is used up, all of it is opened again."""
    next_frame = peer.next

    def crediting(*args: float) -> object:
        frame = next_frame(*args)
        if peer.window == 0:
            peer.credit(0, DEFAULT_WINDOW)
        return frame

    peer.next = crediting  # type: ignore[method-assign, assignment]
    at_once(peer, calls)


def frames_of(
    calls: int, size: int, reader: Reader, connection_bytes: int = MAX_WINDOW - DEFAULT_WINDOW
) -> list[tuple[int, int]]:
    """The DATA frames of so many calls at once on one connection: stream and length."""
    listener = Listener()
    with callers(listener.address, calls, by_library=True) as users:
        warm_up = users.call(b"x")
        peer = listener.accept().greet({INITIAL_WINDOW_SIZE: MAX_WINDOW}, connection_bytes)
        peer.serve(WARM_UP)
        assert kinds(warm_up) == ["good"]
        peer.quiet()
        peer.sent.clear()
        reading = gevent.spawn(reader, peer, calls)
        sent = [users.call(bytes(size)) for _ in range(calls)]
        assert kinds(*sent) == ["good"] * calls
        reading.get()
    listener.close()
    return peer.sent


def turns(frames: list[tuple[int, int]]) -> list[int]:
    """The bytes that came one after the other from one stream."""
    return [sum(size for _, size in turn) for _, turn in itertools.groupby(frames, lambda frame: frame[0])]


def mean_end(frames: list[tuple[int, int]]) -> float:
    """When calls end, on average, as a share of all bytes."""
    reached = list(itertools.accumulate(size for _, size in frames))
    last = {stream: at for (stream, _), at in zip(frames, reached, strict=True)}
    return sum(last.values()) / len(last) / reached[-1]


@pytest.mark.parametrize("calls", [2, 4, 16])
def test_a_picture_is_sent_whole_before_the_next(calls: int) -> None:
    """First come, first served: by far most calls have all of their bytes in a row."""
    frames = frames_of(calls, PICTURE_BYTES, at_once)
    first = list(dict.fromkeys(stream for stream, _ in frames))
    assert first == sorted(first)
    assert len(turns(frames)) <= 1.5 * calls
    assert mean_end(frames) == pytest.approx((calls + 1) / 2 / calls, rel=0.15)


def test_so_it_is_at_a_full_socket() -> None:
    frames = frames_of(16, PICTURE_BYTES, slowly)
    assert len(turns(frames)) <= 2 * 16
    assert mean_end(frames) < 0.7, "0.53 where each is sent whole, 0.97 where they share"


def test_bodies_larger_than_one_write_take_turns_of_writes() -> None:
    """Of 128 KiB or more each, and growing: never of a frame."""
    frames = frames_of(4, LARGE_BYTES, slowly)
    found = sorted(turns(frames))
    assert len(found) >= 2 * 4
    assert found[len(found) // 2] >= 1 << 18


def test_at_the_connections_window_each_credit_goes_to_the_next() -> None:
    """Turns of a whole window, so that all end late: not first come, first served."""
    frames = frames_of(4, PICTURE_BYTES, by_credit, connection_bytes=0)
    assert len(turns(frames)) > 5 * 4
    assert mean_end(frames) > 0.75, "0.63 where each is sent whole"
