"""Units in words: how fine a time is shown, how long something took, and when it was."""

import pytest

from reports.format import duration, known, milliseconds, moment, ms, plural, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (0.0003, "<0.1"),
        (0.0499, "<0.1"),
        (-0.0003, "<0.1"),
        (0.051, "0.1"),
        (0.36, "0.4"),
        (-0.12, "-0.1"),
        (9.04, "9.0"),
        (41.86, "41.9"),
        (99.94, "99.9"),
        (99.96, "100"),
        (412.4, "412"),
        (5266.9, "5,270"),
    ],
)
def test_a_latency_has_three_digits_and_none_finer_than_a_tenth(value: float, text: str) -> None:
    assert milliseconds(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (30.52, 29.81, 31.38, "30.5 (29.8–31.4)"),
        (30.52, 27.42, 33.66, "31 (27–34)"),
        (1_234.0, 900.0, 1_600.0, "1,200 (900–1,600)"),
        (30.52, None, None, "30.5"),
    ],
)
def test_an_interval_that_reaches_a_tenth_leaves_two_digits(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert with_interval(value, low, high) == text
    assert with_interval(value, low, high, milliseconds, " ms").replace(" ms", "") == text


def test_nanoseconds_are_shown_as_milliseconds_and_what_is_unknown_as_a_dash() -> None:
    assert (ms(41_860_000), ms(12_000), ms(0), ms(None)) == ("41.9", "<0.1", "0.0", "–")
    assert known(12_000, 1e6) == "0.0120"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (45, "45 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (260, "4 min 20 s"),
        (599, "9 min 59 s"),
        (630, "10 min"),
        (3600, "1 h 0 min"),
        (7_512, "2 h 5 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_a_duration_as_people_write_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("utc", "text"),
    [
        ("2026-11-25T09:04:20.384Z", "25 Nov 2026, 09:04 UTC"),
        ("2026-01-02T23:59:59Z", "2 Jan 2026, 23:59 UTC"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_moment_as_people_write_it(utc: str, text: str) -> None:
    assert moment(utc) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1_234, "1,234 runs")]
)
def test_a_count_with_its_noun(count: int, text: str) -> None:
    assert plural(count, "run") == text
