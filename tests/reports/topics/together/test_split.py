"""One schedule split among two endpoints: the verdict by the seconds in which both answered."""

from math import sin
from pathlib import Path
from typing import Any

import pytest

from reports.study.study import Study, load_study
from reports.topics.together.split import schedules, split_table
from tests.reports.answers import row, told
from tests.reports.builder import Book
from tests.reports.open_load import texts
from tests.reports.topics.together.planted import split

DRIFT = [20 * (1 + 0.3 * sin(at / 9)) for at in range(60)]
"""Milliseconds of a server that slows down for all and recovers."""
NOISE = [1 + 0.05 * sin(7.3 * at) for at in range(60)]
ONE_RUN = "This is within one run, and leaves out how runs differ; rerun with --repeats 5 to confirm."
NONE_FAILED = "Failures: old 0 of 2,700, new 0 of 300."


def times_as_fast(ratio: float, noise: float = 1.0) -> list[float]:
    """The new one's milliseconds in each second of the drift."""
    return [ms / ratio * (1 + noise * (off - 1)) for ms, off in zip(DRIFT, NOISE, strict=True)]


def study(book: Book, folder: Path) -> Study:
    book.footer()
    return load_study(book.write(folder))


@pytest.mark.parametrize(
    ("new_ms", "more", "said"),
    [
        (
            times_as_fast(1.12), {},
            "new is 1.12 times as fast as old (95 % CI 1.10–1.14), from 60 paired seconds."
            f" {NONE_FAILED} {ONE_RUN}",
        ),
        (
            times_as_fast(0.5), {},
            "new is 2.00 times as slow as old (95 % CI 1.97–2.04), from 60 paired seconds."
            f" {NONE_FAILED} {ONE_RUN}",
        ),
        (
            times_as_fast(1.0), {},
            "new is as fast as old, within ±5 % (95 % CI 0.98–1.02), from 60 paired seconds."
            f" {NONE_FAILED} {ONE_RUN}",
        ),
        (
            times_as_fast(1.0, noise=8), {},
            "no difference is shown between new and old (95 % CI 0.85–1.15), from 60 paired seconds."
            f" {NONE_FAILED} {ONE_RUN}",
        ),
        (
            [0] * 45 + times_as_fast(1.12)[45:], {},
            "new against old is not known: 15 paired seconds, 20 are needed. "
            f"Failures: old 0 of 2,700, new 0 of 300. {ONE_RUN}",
        ),
        (
            times_as_fast(1.12), {"failed": 12},
            "new against old is not known: each run of new is invalidated: failures. "
            f"Failures: old 0 of 2,700, new 12 of 312. {ONE_RUN}",
        ),
        (
            times_as_fast(1.12), {"repeats": 2},
            "new is 1.12 times as fast as old (95 % CI 1.10–1.13), from 120 paired seconds. "
            "Failures: old 0 of 5,400, new 0 of 600. "
            "Two runs are too few to say how runs differ; rerun with --repeats 5 to confirm.",
        ),
        (
            times_as_fast(1.12), {"repeats": 3},
            "new is 1.12 times as fast as old (95 % CI 1.11–1.13), from 180 paired seconds. "
            "Failures: old 0 of 8,100, new 0 of 900.",
        ),
    ],
)  # fmt: skip
def test_the_verdict(new_ms: list[float], more: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert row(study(split(DRIFT, new_ms, **more), tmp_path), "Traffic split") == said


def test_seconds_in_which_one_had_no_request_are_left_out(tmp_path: Path) -> None:
    new_ms = [0 if at % 3 else ms for at, ms in enumerate(times_as_fast(1.12))]
    ((_, new),) = schedules(study(split(DRIFT, new_ms), tmp_path))
    assert new.faster is not None
    assert new.pairs is not None
    assert (len(new.pairs), round(new.faster.ratio, 2)) == (20, 1.12)


def test_the_table_has_shares_asked_and_sent_beside_the_times(tmp_path: Path) -> None:
    table = split_table(study(split(DRIFT, times_as_fast(1.12)), tmp_path))
    assert [[*line[:7], *line[9:]] for line in texts(table)] == [
        ["old", "50", "90", "90", "2,700", "0", "20.0", "1×", ""],
        ["new", "50", "10", "10", "300", "0", "17.9", "1.12× (1.10–1.14)", "60"],
    ]


def test_several_rates_are_told_apart_and_the_first_screen_asks_for_no_best(tmp_path: Path) -> None:
    book, more = split(DRIFT, times_as_fast(1.12)), split(DRIFT, times_as_fast(1.5), rate=100)
    book.header["plan"] += more.header["plan"]
    book.records += more.records
    rows = told(study(book, tmp_path))
    assert rows[0].startswith(
        "Traffic split: at 50/s new is 1.12 times as fast as old (95 % CI 1.10–1.14), from 60 paired seconds;"
        " at 100/s new is 1.50 times as fast as old (95 % CI 1.47–1.53), from 60 paired seconds."
    )
    assert {line.partition(":")[0] for line in rows}.isdisjoint({"Best", "Rates kept"})
