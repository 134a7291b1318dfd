"""Bounds on goodput: the share of good requests as failures are judged, their rate as other means are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.gates.source import source_of
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.gates.book import require
from tests.reports.gates.rows import HTTP, Run, one, repeated, said_of, seconds_of
from tests.reports.mixed_book import a_mix, mixed_second


def good(of_200: Sequence[int], seconds: int, dropped: int = 0) -> list[Run]:
    """Three runs of 200 successes a second, of which so many were good, second by second in turn."""
    runs = []
    for repeat in (1, 2, 3):
        share = sum(of_200) / len(of_200) / 200
        run = seconds_of(
            [10.0] * seconds, repeat, *(["dropped-arrivals"] if dropped else []), goodput_share=share
        )
        for second, block in enumerate(run.seconds.blocks):
            block.good = of_200[second % len(of_200)]
            if dropped:
                run.seconds.drop(second, dropped)
        runs.append(run)
    return runs


@pytest.mark.parametrize(
    ("text", "of_200", "seconds", "outcome"),
    [
        ("goodput_share >= 0.95", (200, 199), 30, "pass"),
        ("goodput_share >= 0.98", (200, 199), 150, "pass"),
        # fewer seconds than rule out one bad one in a hundred
        ("goodput_share >= 0.99", (200, 200), 122, "inconclusive"),
        ("goodput_share >= 0.99", (200, 200), 123, "pass"),
        ("goodput_share >= 0.99", (195, 196), 30, "fail"),
        # seen bad seconds are not excused by few ones
        ("goodput_share >= 0.99", (150, 150), 5, "fail"),
        ("goodput_share >= 0.98", (196, 196), 30, "inconclusive"),
    ],
)
def test_a_share_passes_or_fails_by_the_seconds(
    text: str, of_200: tuple[int, int], seconds: int, outcome: str
) -> None:
    found = one(text, good(of_200, seconds))
    assert found.outcome == outcome
    assert found.value == pytest.approx(sum(of_200) / 400)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high


def test_its_sentence_is_in_percent_and_says_what_few_seconds_cannot_show() -> None:
    found = one("goodput_share >= 0.99", good((200, 199), 10))
    assert found.sentence.startswith(f"{HTTP}: goodput_share 99.8 % (95 % CI ")
    assert (
        "at least 99.0 % is required; 30 s cannot show that at most 1 % are late or failed" in found.sentence
    )


@pytest.mark.parametrize(("dropped", "outcome", "value"), [(0, "pass", 1.0), (50, "fail", 0.8)])
def test_dropped_arrivals_are_not_good_and_no_reason_to_leave_a_run_out(
    dropped: int, outcome: str, value: float
) -> None:
    found = one("goodput_share >= 0.9", good((200, 200), 20, dropped))
    assert (found.outcome, found.value, found.runs) == (outcome, pytest.approx(value), 3)


def test_a_rate_is_judged_by_its_repeats_and_under_open_load_too() -> None:
    runs = repeated("onnx-http/b1/r50", "goodput_per_s", 49.8, 49.9, 50.0)
    assert [one(f"goodput_per_s >= {bound}", runs).outcome for bound in (49, 49.9, 51)] == [
        *("pass", "inconclusive", "fail")
    ]


@pytest.mark.parametrize("column", ["goodput_share", "goodput_per_s"])
def test_without_an_objective_nothing_is_known(column: str) -> None:
    runs = [seconds_of([10.0] * 30, repeat) for repeat in (1, 2, 3)]
    found = one(f"{column} >= 0.5", runs)
    assert found.outcome == "inconclusive"
    assert f"3 runs left out ({column} is not known: it takes --slo)" in found.sentence


def test_it_is_read_from_ledgers(tmp_path: Path) -> None:
    book = Book(options={"slo": "p90<=50"})
    for repeat in (1, 2, 3):
        seconds = [mixed_second({}, at, {1: [10.0] * 19, 16: [90.0]}, 50) for at in range(40)]
        a_mix(book, seconds, repeat=repeat)
    book.footer()
    source = source_of([(tmp_path, load_study(book.write(tmp_path)))])
    for bound, outcome in ((0.9, "pass"), (0.97, "fail")):
        (found,) = said_of(source, require(f"goodput_share >= {bound}"))
        assert (found.outcome, found.value) == (outcome, pytest.approx(0.95))
