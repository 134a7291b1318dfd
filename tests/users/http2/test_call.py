"""A call's phases by its moments, and the figures of a process by its connections: numbers, no sockets."""

from types import SimpleNamespace

import pytest

from users.http2.call import Call
from users.http2.figures import UNLIMITED, Figures


def call_of(**moments: int) -> Call:
    """A call that began at 1,000 ns, with these moments."""
    made = Call(b"a block", b"12345", 9)
    made.begun_ns = 1_000
    for name, moment in moments.items():
        setattr(made, name, moment)
    return made


WAITED = {"connect_ns": 10, "stream_wait_ns": 20, "flow_ns": 30}


@pytest.mark.parametrize(
    ("moments", "send", "wait", "receive"),
    [
        ({**WAITED, "sent_ns": 1_100, "first_ns": 1_150}, 40, 50, 30),
        ({**WAITED, "sent_ns": 1_100}, 40, 80, 0),
        ({**WAITED, "sent_ns": 1_120, "first_ns": 1_090}, 60, 0, 60),
        ({**WAITED, "first_ns": 1_090}, 30, 0, 90),
        ({**WAITED, "first_ns": 1_050}, 0, 0, 120),
        ({**WAITED, "sent_ns": 1_200, "first_ns": 1_170}, 120, 0, 0),
        (WAITED, 120, 0, 0),
    ],
)
def test_a_calls_phases_by_its_moments(moments: dict[str, int], send: int, wait: int, receive: int) -> None:
    apart = {"connect": 10, "stream_wait": 20, "flow_wait": 30}
    found = call_of(**moments).phases_ns(1_180)
    assert found == {**apart, "send": send, "wait": wait, "receive": receive}
    assert sum(found.values()) == 180


def test_a_call_on_a_connection_that_there_was_has_no_connect() -> None:
    found = call_of(sent_ns=1_100, first_ns=1_150).phases_ns(1_180)
    assert found == {"stream_wait": 0, "flow_wait": 0, "send": 100, "wait": 50, "receive": 30}


def test_an_answer_has_so_many_bytes_at_most() -> None:
    call = call_of()  # of 9, and 5 before them
    call.add_headers(b"\x88", last=False)
    call.add_data(bytes(14))
    with pytest.raises(ValueError, match="an answer of more than 9 bytes"):
        call.add_data(b"x")


class Streams(list[int]):
    """The calls of a connection."""

    def __init__(self, still_open: int, most_open: int, allowed: int) -> None:
        super().__init__(range(still_open))
        self.most_open, self.allowed = most_open, allowed


class Connection(SimpleNamespace):
    """As figures see it."""

    streams: Streams
    initial_window: int
    __hash__ = object.__hash__  # type: ignore[assignment]


def test_figures_of_several_connections() -> None:
    """The most streams of any, the least window, the least limit; each counted afresh after a take."""
    figures = Figures()
    assert figures.take() == {}
    for most_open, still_open, window, allowed in ((2, 1, 300, UNLIMITED), (5, 3, 100, 9), (3, 0, 200, 7)):
        streams = Streams(still_open, most_open, allowed)
        figures.connections.add(Connection(streams=streams, initial_window=window))
    for took_ns in (7, 3, 5):
        figures.pinged(took_ns)
    figures.counts["retried"] += 2
    first, second = figures.take(), figures.take()
    told = {"connections": 3, "stream_window_bytes": 100, "streams_allowed": 7}
    assert told.items() <= first.items()
    assert told.items() <= second.items()
    assert [one["streams"] for one in (first, second)] == [5, 3]
    counts = [[one.get(name) for name in ("pings", "ping_ns", "ping_min_ns")] for one in (first, second)]
    assert counts == [[3, 15, 3], [0, 0, None]]
    assert [one["retried"] for one in (first, second)] == [2, 0]
