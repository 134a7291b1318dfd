"""Shared connections of HTTP against a real server: fair turns, whole timeouts, and no connection lost."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gevent
import pytest
from gevent.event import Event

from tests.processes import eventually
from tests.users.slow_server import Server, answer_of, serving
from tests.users.ways import codec_at
from users.codecs.base import PreparedRequest
from users.codecs.embed import Embed
from users.errors import ErrorKind, RequestError
from users.transport.base import Reply
from users.transport.http import BorrowedConnections, HttpTransport

ANSWER = answer_of(json.dumps({"embeddings": [[1.0, *[0.0] * 511]]}).encode())
REQUEST = PreparedRequest(b"{}", (0,))
USERS = 16


class Kept:
    """A handler that answers when it is told to, and says when it did."""

    def __init__(self) -> None:
        self.go, self.answered_ns = Event(), list[int]()

    def __call__(self, server: Server, peer: Any) -> None:
        while server.read(peer):
            self.go.wait()
            self.answered_ns.append(time.perf_counter_ns())
            peer.sendall(ANSWER)


def quick(server: Server, peer: Any) -> None:
    while server.read(peer):
        gevent.sleep(0.001)
        peer.sendall(ANSWER)


def user_of(server: Server, channels: str, timeout_s: float = 30) -> HttpTransport:
    return HttpTransport(codec_at(Embed, f"127.0.0.1:{server.port}"), timeout_s, channels)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def server(kept: Kept) -> Iterator[Server]:
    with serving(kept) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert BorrowedConnections.shared._kept == {}


def sending(user: HttpTransport, until: Callable[[], bool] | None = None) -> gevent.Greenlet:
    """One request, under way: until that holds, or until it has had its time to get in line."""
    greenlet = gevent.spawn(user.send, REQUEST)
    gevent.sleep(0)
    assert until is None or eventually(until)
    return greenlet


@pytest.mark.parametrize(
    ("channels", "connections"),
    [("per-user", 16), ("same-args", 16), ("shared", 1), ("pool:4", 4), ("pool:32", 16)],
)
def test_sixteen_users_have_equal_turns(channels: str, connections: int) -> None:
    turns = Counter[int]()

    def send_on(number: int, user: HttpTransport) -> None:
        while turns.total() < USERS * 10:
            user.send(REQUEST)
            turns[number] += 1

    with serving(quick) as server:
        with ExitStack() as stack:
            users = [stack.enter_context(user_of(server, channels)) for _ in range(USERS)]
            all_sending = [gevent.spawn(send_on, number, user) for number, user in enumerate(users)]
            gevent.joinall(all_sending, timeout=60, raise_error=True)
            assert server.open == server.connections == connections
        assert HttpTransport.connections(USERS, channels) == connections
        assert eventually(lambda: server.open == 0)
    assert len(turns) == USERS
    if connections < USERS:  # else nobody waits for anybody, and fairness is the server's affair
        assert max(turns.values()) - min(turns.values()) <= 2
    assert len(server.bodies) == turns.total()


def test_users_who_have_not_sent_open_nothing(server: Server, kept: Kept) -> None:
    kept.go.set()
    with ExitStack() as stack:
        users = [stack.enter_context(user_of(server, "pool:3")) for _ in range(8)]
        seen = []
        for user in [users[5], users[5], users[1], users[5], users[0], users[2]]:
            user.send(REQUEST)
            seen.append(server.connections)
    assert seen == [1, 1, 2, 2, 3, 3]


def test_waiting_for_a_connection_is_sending(server: Server, kept: Kept) -> None:
    with user_of(server, "shared") as first, user_of(server, "shared") as second:
        ahead = sending(first, lambda: len(server.bodies) == 1)
        began_ns = time.perf_counter_ns()
        behind = sending(second)
        in_line_ns = time.perf_counter_ns()
        kept.go.set()
        gevent.joinall([ahead, behind], timeout=30, raise_error=True)
        took_ns = time.perf_counter_ns() - began_ns
    phases_ns = behind.value.phases_ns
    assert set(phases_ns) - {"connect"} == {"send", "wait", "receive", "decode"}
    assert phases_ns["send"] >= kept.answered_ns[0] - in_line_ns > 0
    assert sum(phases_ns.values()) <= took_ns
    assert server.connections == 1


def test_waiting_counts_in_the_timeout(server: Server, kept: Kept) -> None:
    with ExitStack() as stack:
        users = [user_of(server, "shared", timeout_s) for timeout_s in (30, 0.05, 30)]
        first, hasty, third = map(stack.enter_context, users)
        ahead = sending(first, lambda: len(server.bodies) == 1)
        late, behind = sending(hasty), sending(third)
        late.join(timeout=30)
        assert isinstance(late.exception, RequestError)
        assert late.exception.kind is ErrorKind.TIMEOUT
        kept.go.set()
        gevent.joinall([ahead, behind], timeout=30, raise_error=True)
    assert isinstance(ahead.value, Reply)
    assert (server.connections, len(server.bodies)) == (1, 2), "who timed out has sent nothing"


def test_a_timeout_after_the_wait_is_of_the_whole(server: Server, kept: Kept) -> None:
    with user_of(server, "shared", 0.05) as first, user_of(server, "shared") as second:
        ahead = sending(first, lambda: len(server.bodies) == 1)
        behind = sending(second, lambda: len(server.bodies) == 2)  # the first has timed out
        assert ahead.exception.kind is ErrorKind.TIMEOUT
        kept.go.set()
        behind.join(timeout=30)
        assert isinstance(behind.value, Reply)
    assert server.connections == 2, "one with an answer still to come is of no more use"


def test_who_is_killed_while_waiting_has_left_the_line(server: Server, kept: Kept) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(user_of(server, "shared")) for _ in range(3)]
        ahead = sending(users[0], lambda: len(server.bodies) == 1)
        killed, behind = sending(users[1]), sending(users[2])
        killed.kill()
        kept.go.set()
        gevent.joinall([ahead, behind], timeout=30, raise_error=True)
        users[1].send(REQUEST)
    assert (server.connections, len(server.bodies)) == (1, 3)


def test_the_connection_of_one_killed_in_its_use_is_replaced(server: Server, kept: Kept) -> None:
    with user_of(server, "shared") as first, user_of(server, "shared") as second:
        ahead = sending(first, lambda: len(server.bodies) == 1)
        behind = sending(second)
        kept.go.set()
        ahead.kill()
        behind.join(timeout=30)
        assert isinstance(behind.value, Reply)
        first.send(REQUEST)
        assert eventually(lambda: server.open == 1)
    assert server.connections == 2


def test_a_broken_connection_is_replaced() -> None:
    def breaks_the_first(server: Server, peer: Any) -> None:
        while server.read(peer):
            if len(server.bodies) == 1:
                peer.sendall(ANSWER[:-100])
                return
            peer.sendall(ANSWER)

    with serving(breaks_the_first) as server:
        with ExitStack() as stack:
            users = [stack.enter_context(user_of(server, "shared")) for _ in range(4)]
            all_sending = [sending(user) for user in users]
            gevent.joinall(all_sending, timeout=30)
            assert all_sending[0].exception.kind is ErrorKind.RESET
            assert [isinstance(greenlet.value, Reply) for greenlet in all_sending[1:]] == [True] * 3
        assert (server.connections, len(server.bodies)) == (2, 4)


def test_a_refusal_costs_no_connection() -> None:
    def refuses(server: Server, peer: Any) -> None:
        while server.read(peer):
            peer.sendall(ANSWER.replace(b"200 OK", b"429 Slow down"))

    with serving(refuses) as server:
        with user_of(server, "shared") as first, user_of(server, "shared") as second:
            for user in (first, second, first):
                with pytest.raises(RequestError, match="429"):
                    user.send(REQUEST)
        assert server.connections == 1


def test_they_stay_until_the_last_has_gone(server: Server, kept: Kept) -> None:
    kept.go.set()
    first, second = user_of(server, "shared"), user_of(server, "shared")
    first.open()
    second.open()
    first.send(REQUEST)
    first.close()
    first.close()
    second.send(REQUEST)
    assert (server.open, server.connections) == (1, 1)
    second.close()
    assert eventually(lambda: server.open == 0)
    with user_of(server, "shared") as third:
        third.send(REQUEST)
    assert server.connections == 2


def test_pools_of_other_sizes_and_servers_are_others(server: Server, kept: Kept) -> None:
    kept.go.set()
    with serving(quick) as elsewhere, ExitStack() as stack:
        for channels in ("shared", "pool:2", "per-user"):
            stack.enter_context(user_of(server, channels)).send(REQUEST)
            stack.enter_context(user_of(elsewhere, channels)).send(REQUEST)
        assert (server.connections, elsewhere.connections) == (3, 3)


def test_a_connection_for_every_request() -> None:
    with serving(quick) as server, user_of(server, "per-request") as user:
        for _ in range(3):
            assert user.send(REQUEST).embeddings.shape == (1, 512)
            assert eventually(lambda: server.open == 0)
        assert server.connections == 3
