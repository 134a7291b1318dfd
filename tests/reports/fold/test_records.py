"""Seconds without a gap, ratios and last words; histograms that hold what was counted."""

from typing import Any

import pytest

from reports.fold.records import LastWords, Weighted, epoch_s, every_second, grouped, iso, ratio, readable
from tests.reports.lines import FIRST_SECOND, encoded, window


def test_seconds_of_the_wall_clock() -> None:
    assert epoch_s("2026-11-21T11:00:00.250Z") == FIRST_SECOND + 0.25
    assert iso(FIRST_SECOND + 61) == "2026-11-21T11:01:01Z"
    with pytest.raises((ValueError, OverflowError)):
        iso(1 << 60)


@pytest.mark.parametrize(
    ("known", "width_s", "found"),
    [
        ([5, 2, 2], 1, [2, 3, 4, 5]),
        ([7, 1], 3, [1, 4, 7]),
        ([], 1, []),
        # four holes for each that is told, and 60: those of two are 68, of three 72
        ([0, 68], 1, list(range(69))),
        ([0, 69], 1, [0, 69]),
        ([0, 1, 72], 1, list(range(73))),
        ([0, 136], 2, list(range(0, 137, 2))),
        ([0, 138], 2, [0, 138]),
    ],
)
def test_seconds_that_nobody_tells_of_stand_between_others_unless_they_are_most(
    known: list[int], width_s: int, found: list[int]
) -> None:
    assert every_second(known, width_s) == found


def test_ratios_and_means_need_a_whole() -> None:
    assert [
        ratio(part, whole) for part, whole in ((6, 4), (0, 4), (None, 4), (6, None), (6, 0), (6, -4))
    ] == [*(1.5, 0.0, None, None, None, None)]
    found = Weighted()
    assert found.mean is None
    found.add(30, 2)
    found.add(10, 6)
    assert found.mean == 5.0
    assert grouped([{"a": 1, "b": 1}, {"a": 2}, {"a": 1, "b": 2}], "a") == {
        1: [{"a": 1, "b": 1}, {"a": 1, "b": 2}],
        2: [{"a": 2}],
    }


@pytest.mark.parametrize("closed", [(), (1,), (1, 2), (1, 2, 3, 4)])
def test_the_last_word_of_each_worker_stands_for_a_second_whether_it_is_over_or_not(
    closed: tuple[int, ...],
) -> None:
    """The seconds have 3 + 4, 9, of which one worker told, and 2."""
    words = LastWords("users")
    assert (words.mean, words.most) == (None, None)
    for second, worker, users in ((1, "w0", 9), (1, "w0", 3), (1, "w1", 4), (2, "w0", 9), (2, "w1", None)):
        words.add({"second": second, "worker": worker, "users": users})
    words.close(closed[:1])
    words.close(closed[1:])
    words.add({"second": 3 if 3 not in closed else 5, "worker": "w1", "users": 2})
    assert (words.mean, words.most) == (6.0, 7)


@pytest.mark.parametrize(
    ("name", "count"), [("latency", 3), ("service_time", 1), ("send_delay", 4), ("send", 4)]
)
def test_histograms_hold_as_many_values_as_were_counted(name: str, count: int) -> None:
    """Of two successes and a failure each success has a latency, and any may have a phase."""
    line: dict[str, Any] = window({}, "w0", [1, 2], 1) | {"failures": {"reset": 1}}
    line["histograms"] |= {name: encoded([5] * count)}
    with pytest.raises(ValueError, match=f"a window of 2 successes has {count} values of {name}"):
        readable([line])


def test_histograms_are_decoded_of_the_kinds_that_have_them() -> None:
    send = window({}, "w0", [1, 2], 1) | {"failures": {"reset": 1}}
    send["histograms"] |= {"send": encoded([5] * 3), "wait": encoded([5])}
    trace = {"kind": "trace", "histograms": {"queue": encoded([7] * 9)}}
    lag, no_lag = ({"kind": "health", "lag": text} for text in (encoded([1, 2]), ""))
    other = {"kind": "sample", "histograms": {"x": "not one"}}
    found = readable([send, trace, lag, no_lag, other])
    counted = [{name: held.total for name, held in one["histograms"].items()} for one in found[:4]]
    sent = {"latency": 2, "service_time": 2, "send_delay": 2, "send": 3, "wait": 1}
    assert (counted, found[4]) == ([sent, {"queue": 9}, {"lag": 2}, {}], other)
