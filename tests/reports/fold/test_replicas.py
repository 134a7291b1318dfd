"""Whether readings are of one server: a restart, and replicas that answer in turn, by exact sequences."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import pytest

from reports.fold.replicas import Seen, counts_a_part, fate, said_of_several, started_s, too_busy, too_few
from reports.fold.windows import Windows

RATE = 250
"""Requests a second that one server counts."""


def counts(*values: int) -> list[Seen]:
    return [Seen(value) for value in values]


def growing(first: int, seconds: int, rate: int = RATE) -> list[int]:
    return list(accumulate([first, *[rate] * seconds]))


def alternating(first: int, second: int, seconds: int) -> list[int]:
    """Two replicas that share the load evenly and are read in turn."""
    both = (growing(first, seconds), growing(second, seconds))
    return [both[at % 2][at] for at in range(seconds + 1)]


def named(values: Iterable[int], names: str) -> list[Seen]:
    return [Seen(value, name) for value, name in zip(values, names, strict=True)]


IN_STEP = counts(327, 406, 495, 576, 658, 736, 815, 819, 822)
"""Of two replicas."""


@pytest.mark.parametrize(
    ("readings", "sent", "told", "found"),
    [
        (counts(*growing(1_000, 8)), 8 * RATE, {}, "one"),
        (counts(5, 5), 0, {}, "one"),
        ([Seen(None), Seen(None)], 100, {}, "one"),
        # the models of an ensemble are not read at quite the same time
        (counts(1_000, 995, 1_200), 200, {}, "one"),
        (counts(1_000, 994, 1_200), 200, {}, "several"),
        # one drop, and growth from near 0
        (counts(*growing(1_000, 4), *growing(120, 4)), 9 * RATE, {}, "restarted"),
        (counts(*growing(4_000, 3), *growing(90, 3), *growing(40, 3)), 11 * RATE, {}, "restarted"),
        # a server that was not read for some seconds after its restart
        (counts(*growing(1_000, 4), 1_000, *growing(1_250, 4)), 13 * RATE, {"unread": 4}, "restarted"),
        (counts(*growing(1_000, 4), 1_000, *growing(1_250, 4)), 13 * RATE, {}, "several"),
        # it counts three times as much as usual at most, where a usual growth is known
        (counts(*growing(5_000, 4), *growing(2_000, 1)), 4_000, {}, "restarted"),
        (counts(*growing(5_000, 4), *growing(2_001, 1)), 4_000, {}, "several"),
        # of two replicas that are read in turn one was added later, or neither
        (counts(*alternating(5_000, 200, 12)), 24 * RATE, {}, "several"),
        (counts(*alternating(200, 5_000, 12)), 24 * RATE, {}, "several"),
        (counts(*alternating(1_000, 500, 12)), 24 * RATE, {}, "several"),
        (counts(*alternating(40_000, 41_000, 12)), 24 * RATE, {}, "several"),
        # a few readings are enough where the counts are more than was sent
        (counts(9_000, 4_000), 500, {}, "several"),
        (counts(9_000, 601), 500, {}, "several"),
        (counts(9_000, 600), 500, {}, "restarted"),
        # another counter fell
        (counts(1_000, 1_100), 100, {"went_back": True}, "several"),
        (counts(3, 90), 100, {"went_back": True}, "restarted"),
        (IN_STEP, 985, {"went_back": True}, "several"),
        ([Seen(None), Seen(None)], 100, {"went_back": True}, "restarted"),
        # two pods that started together and whose counts alone never fall; one whose counts are of threads
        (named(growing(100, 4), "abaab"), 5 * RATE, {}, "several"),
        (named((100, 90, 95, 80, 99), "aaaaa"), 5 * RATE, {}, "one"),
        (named((100, 90, 95, 80, 99), "aaaaa"), 5 * RATE, {"went_back": True}, "restarted"),
        # an identity that changes once
        (named((1_000, 1_250, 1_500, 80, 330, 580), "aaabbb"), 6 * RATE, {}, "restarted"),
        (named((1_000, 1_250, 1_500, 1_750, 2_000, 4_580), "aaaaab"), 6 * RATE, {}, "several"),
    ],
)
def test_what_became_of_a_server(readings: list[Seen], sent: int, told: dict[str, Any], found: str) -> None:
    assert fate(readings, sent, **told) == found


@pytest.mark.parametrize(
    ("first", "found"), [(99, "one"), (102, "one"), (120, "several"), (5_000, "several")]
)
def test_another_replica_answers_the_last_reading_alone(first: int, found: str) -> None:
    """As a balancer of connections does: the samples are read over one of them, the last over a new one.

    Two that counted the same look like one here; that it counted half of what was sent tells.
    """
    assert fate(counts(100, *growing(first, 10), 100 + 10 * RATE), 20 * RATE) == found


NINE = 1_795_251_600
"""A phase begins an hour later."""


def started(*counted: tuple[str, int, int]) -> list[Seen]:
    """Readings of a host that started so many seconds after nine."""
    return [Seen(count, f"{host}/{NINE + after_s}.250") for host, after_s, count in counted]


@pytest.mark.parametrize(
    ("second", "after_s", "found"),
    [
        ("b", 0, "several"),  # as old as the first one
        ("b", -60, "several"),
        ("b", 300, "several"),  # younger, and older than the phase
        ("b", 3_610, "restarted"),  # a new pod
        ("a", 3_610, "restarted"),
        ("a", 3_541, "restarted"),  # by clocks that are a minute apart
    ],
)
def test_a_server_that_started_before_the_phase_did_not_restart_in_it(
    second: str, after_s: int, found: str
) -> None:
    """1,800 were sent; each of the two counted 400 between its readings."""
    readings = started(("a", 0, 1_000), ("a", 0, 1_400), (second, after_s, 500), (second, after_s, 900))
    assert fate(readings, 1_800, began_s=NINE + 3_600.0) == found


def test_when_a_server_started_is_told_by_its_identity_alone() -> None:
    assert started_s("host-a/1795251600.250") == NINE + 0.25
    assert [started_s(name) for name in ("", "a", "1795251600", "a/pod-7")] == [None] * 4
    for after_s, found in ((300, "restarted"), (0, "several")):  # when the phase began is not known
        readings = (("a", 0, 1_000), ("a", 0, 1_400), ("b", after_s, 500), ("b", after_s, 900))
        assert fate(started(*readings), 1_800) == found


def test_how_it_is_said() -> None:
    assert said_of_several(named((1, 2, 3), "aba")) == (
        "2 servers answered when the counters were read (a, b)"
    )
    assert said_of_several(counts(3, 1, 4)).startswith("the counters went up and down")


def test_fewer_counted_than_succeeded() -> None:
    sent = Windows()
    sent.ok = 1_000
    assert (too_few(1_000, sent), too_few(None, sent)) == ("", "")
    assert too_few(500, sent) == (
        "the server counted only 500 of 1,000 requests that succeeded: several servers may stand behind this "
        "address, or a proxy answers some"
    )
    assert [counts_a_part(counted, sent) for counted in (None, 500, 949, 950, 1_000)] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize(("busy", "share", "said"), [
    (1.05, 0.0, False), (1.06, 0.0, True), (1.3, 0.3, False), (1.3, 0.2, True), (None, 0.0, False),
])  # fmt: skip
def test_more_executed_than_there_was_time_for(busy: float | None, share: float, said: bool) -> None:
    assert bool(too_busy(busy, share, 1)) == said


def test_four_half_idle_replicas_read_as_one() -> None:
    assert too_busy(2.0, 0.01, 1) == (
        "executions took 2.00 times the time of its one instance: several servers may stand behind this "
        "address, or it has more instances than it says"
    )
