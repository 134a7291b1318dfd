"""Good answers, spoilt in every way: each call ends, right or with an error of an expected kind.

Two calls on one connection get their answers from a server whose bytes are spoilt: its greeting, or its
answers. Where that leaves them waiting, it hangs up, or says nothing any more. Then calls are made that are
answered well: one may fail, where what was spoilt is still in the connection, but not the one after.
`-s` shows the table.
"""

import gc
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

import gevent
import numpy as np
import pytest
from hpack import Encoder
from numpy.typing import NDArray

from tests.processes import PATIENCE_S
from tests.users.http2 import callers as making
from tests.users.http2.callers import Asked, Callers, Listener, Plain, callers, kinds
from tests.users.http2.mutations import MUTATIONS, frames_of
from tests.users.http2.peer import GOOD_HEAD, Peer, answered, block, framed, head, message, numbered, set_to
from users.codecs.base import Answer
from users.errors import RequestError, StatusError
from users.http2 import figures
from users.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
    PADDED,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
)

pytestmark = pytest.mark.system

PAUSE_S = 0.01
"""After which a call that has not ended waits for more."""
DEADLINE_S = 0.5
SEED = 31
EXPECTED = {"good", "bad-reply", "reset", "server-error", "rejected"}
LARGE_BYTES = 150_000
"""Of a request that needs more than the windows of the start."""


def sealed(text: bytes) -> bytes:
    """With a checksum, so that only the right answer is a good one."""
    return text + zlib.crc32(text).to_bytes(4, "big")


class Sealed(Plain):
    """Answers are right, or bad replies."""

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """As the plain one's, behind the check."""
        body = bytes(answer.body)
        if sealed(body[:-4]) != body:
            raise ValueError("a spoilt answer")
        return super().vectors(answer)


GREETING = (
    set_to({INITIAL_WINDOW_SIZE: 1 << 20, MAX_FRAME_SIZE: 1 << 15, MAX_CONCURRENT_STREAMS: 100})
    + numbered(WINDOW_UPDATE, 0, 1 << 20)
    + framed(SETTINGS, ACK, 0)
    + framed(PING, 0, 0, b"greeting")
)
ONE, THREE = message(sealed(b"the first answer" * 4)), message(sealed(b"and another"))
ENDED = Encoder().encode([("grpc-status", "0"), ("grpc-message", "all is well")], huffman=True)
ANSWERS = b"".join((
    head(1),
    framed(DATA, 0, 1, ONE[:20]),
    framed(HEADERS, 0, 3, block(GOOD_HEAD)[:11]), framed(CONTINUATION, END_HEADERS, 3, block(GOOD_HEAD)[11:]),
    framed(DATA, PADDED, 1, b"\5" + ONE[20:] + bytes(5)),
    framed(PING, 0, 0, b"answers."),
    framed(DATA, 0, 3, THREE),
    framed(HEADERS, END_HEADERS | END_STREAM, 1, ENDED),
    framed(HEADERS, END_HEADERS | END_STREAM, 3, ENDED),
))  # fmt: skip
GOOD = sealed(b"good")
OPEN = set_to({INITIAL_WINDOW_SIZE: MAX_WINDOW}) + numbered(WINDOW_UPDATE, 0, MAX_WINDOW - DEFAULT_WINDOW)
"""The greeting of a server that holds nothing back."""


class Server:
    """Answers calls well on whatever connections it is given, and on all that come."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.peers: list[Peer] = []
        self._serving = [gevent.spawn(self._accept)]

    def _accept(self) -> None:
        while True:
            peer = self._listener.accept()
            peer.raw(OPEN)
            self.serve(peer)

    def serve(self, peer: Peer) -> None:
        """Answer what comes on a connection."""
        self.peers.append(peer)
        self._serving.append(gevent.spawn(self._answer, peer))

    def _answer(self, peer: Peer) -> None:
        try:
            for stream in asked_on(peer):
                peer.raw(answered(stream, GOOD))
        except OSError:
            pass

    def hang_up(self) -> None:
        """On all."""
        for peer in self.peers:
            peer.close()

    def close(self) -> None:
        """Serve no more."""
        gevent.killall(self._serving)
        self.hang_up()


def asked_on(peer: Peer, seconds: float = 60) -> Iterator[int]:
    """Streams whose requests are whole, until the client hangs up, or nothing comes for so long."""
    while True:
        frame = peer.take()
        if frame is None:
            try:
                if not peer.read(seconds):
                    return
            except (OSError, EOFError):
                return
            peer.skip(PREFACE)
        elif frame[0] == DATA and frame[1] & END_STREAM:
            yield frame[2]


def send(peer: Peer, data: bytes, random: Random) -> None:
    """In one piece, or in several; the client may have hung up."""
    try:
        while data:
            size = len(data) if random.random() < 0.7 else random.randint(1, len(data))
            peer.raw(data[:size])
            data = data[size:]
            gevent.sleep(0)
    except OSError:
        pass


def play(peer: Peer, greeting: bytes, answers: bytes, random: Random) -> None:
    """A server's side of two calls."""
    send(peer, greeting, random)
    asked = asked_on(peer, PAUSE_S)
    if next(asked, 0) and next(asked, 0):
        send(peer, answers, random)


def case(listener: Listener, greeting: bytes, answers: bytes, random: Random, silent: bool) -> list[str]:
    """What became of two calls, and of those after."""
    size = LARGE_BYTES if random.random() < 0.2 else 10
    with callers(listener.address, 2, DEADLINE_S if silent else PATIENCE_S) as users:
        calls = users.calls(2, size)
        peer = listener.accept()
        with closing(Server(listener)) as server:
            play(peer, greeting, answers, random)
            gevent.joinall(calls, timeout=PAUSE_S)
            if not silent and not all(call.ready() for call in calls):
                peer.close()
            found = [judged(call, silent) for call in calls]
            return [*found, afterwards(server, users, peer, silent)]


def judged(call: Asked, silent: bool = False) -> str:
    """The kind in which a call has ended, which must be one of those expected."""
    (kind,) = kinds(call)
    in_time = silent or (
        isinstance(call.value, RequestError) and isinstance(call.value.__cause__, StatusError)
    )
    assert kind in EXPECTED or (kind == "timeout" and in_time), call.value
    return kind


def afterwards(server: Server, users: Callers, peer: Peer, silent: bool) -> str:
    """How the next calls fare, which are answered well."""
    server.serve(peer)
    connections = len(server.peers)
    for number in range(2):
        call = users.call()
        call.join(timeout=DEADLINE_S)
        if not call.ready():
            server.hang_up()
        if judged(call, silent) == "good":
            same = len(server.peers) == connections
            return "after another" if number else "goes on" if same else "connects"
        server.hang_up()
    raise AssertionError("the second call to a good server has failed")


def spoilt(name: str, random: Random) -> tuple[bytes, bytes]:
    """A greeting and answers, one of them spoilt so."""
    mutate = MUTATIONS[name]
    if random.random() < 0.2:
        return mutate(random, frames_of(GREETING)), ANSWERS
    return GREETING, mutate(random, frames_of(ANSWERS))


def files() -> int:
    """How many this process has open."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def outcomes(
    listener: Listener, cases: Iterator[tuple[bytes, bytes]], random: Random, silent: bool = False
) -> Counter[str]:
    """Of many cases; no file may stay open, nor a connection."""
    before, found = files(), Counter[str]()
    for number, (greeting, answers) in enumerate(cases):
        try:
            found.update(case(listener, greeting, answers, random, silent))
        except BaseException:
            print(f"case {number}: {greeting.hex()} {answers.hex()}")
            raise
        listener.forget()
    assert files() <= before
    figures.take()
    assert figures.take() == {}
    return found


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "Plain", Sealed)


def show(name: str, found: Counter[str]) -> None:
    """A line of the table."""
    print(f"{name:18}", *(f"{kind} {count}" for kind, count in sorted(found.items())), sep="  ")


def test_what_is_not_spoilt_is_right(listener: Listener) -> None:
    random = Random(SEED)
    found = outcomes(listener, iter([(GREETING, ANSWERS)] * 20), random)
    assert found == {"good": 40, "goes on": 20}


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_spoilt_answers(listener: Listener, name: str, count: int) -> None:
    random = Random(f"{SEED} {name} {count}")
    found = outcomes(listener, (spoilt(name, random) for _ in range(count)), random)
    show(name, found)
    assert found.total() == 3 * count


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_spoilt_answers_of_a_server_that_says_nothing_more(listener: Listener, name: str) -> None:
    """Then those that wait run out of time."""
    random = Random(f"{SEED} {name} silent")
    found = outcomes(listener, (spoilt(name, random) for _ in range(30)), random, silent=True)
    show(name, found)
    assert found.total() == 3 * 30


@pytest.mark.slow
def test_answers_cut_at_every_byte(listener: Listener) -> None:
    random = Random(SEED)
    greetings = ((GREETING[:at], ANSWERS) for at in range(len(GREETING)))
    found = outcomes(listener, greetings, random)
    show("cut greetings", found)
    found = outcomes(listener, ((GREETING, ANSWERS[:at]) for at in range(len(ANSWERS))), random)
    show("cut answers", found)
    assert set(found) <= {"good", "reset", "connects", "goes on"}
