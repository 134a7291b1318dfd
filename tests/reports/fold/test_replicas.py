"""Whether readings are of one server: a restart, and replicas that answer in turn, by exact sequences."""

from collections.abc import Iterable
from itertools import accumulate

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


def test_one_server_that_ran_on() -> None:
    assert fate(counts(*growing(1_000, 8)), 8 * RATE) == "one"
    assert fate(counts(5, 5), 0) == "one"
    assert fate([Seen(None), Seen(None)], 100) == "one"


def test_one_drop_and_growth_from_near_0_is_a_restart() -> None:
    assert fate(counts(*growing(1_000, 4), *growing(120, 4)), 9 * RATE) == "restarted"


def test_a_server_that_restarts_twice() -> None:
    assert fate(counts(*growing(4_000, 3), *growing(90, 3), *growing(40, 3)), 11 * RATE) == "restarted"


def test_a_server_that_was_not_read_for_some_seconds_after_its_restart() -> None:
    values = counts(*growing(1_000, 4), 1_000, *growing(1_250, 4))
    assert fate(values, 13 * RATE, unread=4) == "restarted"
    assert fate(values, 13 * RATE) == "several"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (5_000, 200),  # a replica that was added later
        (200, 5_000),
        (1_000, 500),
        (40_000, 41_000),
    ],
)
def test_two_replicas_that_are_read_in_turn(first: int, second: int) -> None:
    assert fate(counts(*alternating(first, second, 12)), 12 * 2 * RATE) == "several"


@pytest.mark.parametrize(
    ("first", "found"), [(99, "one"), (102, "one"), (120, "several"), (5_000, "several")]
)
def test_another_replica_answers_the_last_reading_alone(first: int, found: str) -> None:
    """As a balancer of connections does: the samples are read over one of them, the last over a new one.

    Two that counted the same look like one here; that it counted half of what was sent tells.
    """
    samples = growing(first, 10)
    assert fate(counts(100, *samples, 100 + 10 * RATE), 20 * RATE) == found


def test_a_few_readings_are_enough_where_the_counts_are_more_than_was_sent() -> None:
    assert fate(counts(9_000, 4_000), 500) == "several"
    assert fate(counts(9_000, 400), 500) == "restarted"


def test_a_counter_that_fell_though_requests_did_not() -> None:
    assert fate(counts(1_000, 1_100), 100, went_back=True) == "several"
    assert fate(counts(3, 90), 100, went_back=True) == "restarted"
    in_step = counts(327, 406, 495, 576, 658, 736, 815, 819, 822)  # two replicas; another counter fell
    assert fate(in_step, 985, went_back=True) == "several"
    assert fate([Seen(None), Seen(None)], 100, went_back=True) == "restarted"


def test_an_identity_that_comes_back_is_no_restart() -> None:
    """Each of two pods that started together: their counts alone never fall."""
    assert fate(named(growing(100, 4), "abaab"), 5 * RATE) == "several"
    assert fate(named((100, 90, 95, 80, 99), "aaaaa"), 5 * RATE) == "one"


def test_an_identity_that_changes_once_and_counts_from_0_is_a_restart() -> None:
    assert fate(named((1_000, 1_250, 1_500, 80, 330, 580), "aaabbb"), 6 * RATE) == "restarted"
    assert fate(named((1_000, 1_250, 1_500, 1_750, 2_000, 4_580), "aaaaab"), 6 * RATE) == "several"


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
    unknown = started(("a", 0, 1_000), ("a", 0, 1_400), ("b", 300, 500), ("b", 300, 900))
    assert fate(unknown, 1_800) == "restarted"  # when the phase began is not known


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
