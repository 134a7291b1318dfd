"""Units in words: how fine a time is shown, how long something took, and when it was."""

import pytest

from reports.format import duration, known, milliseconds, moment, ms, plural, with_interval


def test_a_latency_has_three_digits_and_none_finer_than_a_tenth() -> None:
    values = (0, 0.0003, 0.0499, -0.0003, 0.051, 0.36, -0.12, 9.04, 41.86, 99.94, 99.96, 412.4, 5266.9)
    said = "0.0 <0.1 <0.1 <0.1 0.1 0.4 -0.1 9.0 41.9 99.9 100 412 5,270"
    assert " ".join(map(milliseconds, values)) == said


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (30.52, 29.81, 31.38, "30.5 (29.8–31.4)"),
        (30.52, 27.42, 33.66, "31 (27–34)"),
        (1_234.0, 900.0, 1_600.0, "1,200 (900–1,600)"),
        (30.52, None, None, "30.5"),
    ],
)
def test_wide_intervals_lose_digits(value: float, low: float | None, high: float | None, text: str) -> None:
    assert with_interval(value, low, high) == text
    assert with_interval(value, low, high, milliseconds, " ms").replace(" ms", "") == text


def test_nanoseconds_are_shown_as_milliseconds_and_what_is_unknown_as_a_dash() -> None:
    assert (ms(41_860_000), ms(12_000), ms(0), ms(None)) == ("41.9", "<0.1", "0.0", "–")
    assert known(12_000, 1e6) == "0.0120"


def test_a_duration_as_people_write_it() -> None:
    seconds = (0.4, 45, 59.6, 60, 260, 599, 630, 3600, 7_512, 100_000)
    said = "0 s, 45 s, 1 min, 1 min, 4 min 20 s, 9 min 59 s, 10 min, 1 h 0 min, 2 h 5 min, 27 h 46 min"
    assert ", ".join(map(duration, seconds)) == said


def test_a_moment_as_people_write_it() -> None:
    assert moment("2026-11-25T09:04:20.384Z") == "25 Nov 2026, 09:04 UTC"
    assert moment("2026-01-02T23:59:59Z") == "2 Jan 2026, 23:59 UTC"
    assert (moment("yesterday"), moment("")) == ("yesterday", "")


def test_a_count_with_its_noun() -> None:
    assert [plural(count, "run") for count in (0, 1, 1_234)] == ["0 runs", "1 run", "1,234 runs"]
