"""Ratios to a baseline that was not measured in turns with the study: each study counts once."""

from math import log
from pathlib import Path

import pytest

from reports.gates.compared import APART, FIX
from tests.reports.gates.book import a_book, a_study, add, at_other_times, repeats
from tests.reports.gates.test_compared import BASELINE, CELL, one

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("grpc", "outcome"), [(10.0, "pass"), (8.0, "pass"), (11.5, "fail")])
def test_studies_of_other_times_are_judged_by_how_much_they_differ(
    tmp_path: Path, grpc: float, outcome: str
) -> None:
    found = one(tmp_path, BASELINE, a_study(grpc), baseline=at_other_times())
    assert (found.outcome, found.runs, found.note) == (outcome, 1, APART)
    assert found.value == pytest.approx(grpc / 10, rel=2e-3)


@pytest.mark.parametrize("grpc", [10.0, 11.5])
def test_a_baseline_that_differs_by_as_much_tells_nothing_and_repeats_would_not(
    tmp_path: Path, grpc: float
) -> None:
    found = one(tmp_path, BASELINE, a_study(grpc), baseline=at_other_times(10.0, 11.5, 8.7))
    assert (found.outcome, found.more_repeats, found.note) == ("inconclusive", None, APART)
    assert found.sentence.endswith(f"at most 1.00× is required (1.05× tolerated); {FIX}.")
    assert "measuring the two in turns" in FIX


def test_each_study_counts_once_however_many_repeats_it_has(tmp_path: Path) -> None:
    few, many, fewer = a_book(), a_book(), a_book()
    for book, count in ((few, 2), (many, 20), (fewer, 2)):
        repeats(book, "onnx-grpc", 10.0, count=count, seconds=10)
        book.footer()
    found = [
        one(tmp_path / str(at), BASELINE, book, baseline=at_other_times())
        for at, book in enumerate((few, many))
    ]
    assert [verdict.runs for verdict in found] == [1, 1]
    wide, narrow = (log(verdict.high or 0) - log(verdict.low or 0) for verdict in found)
    assert wide == pytest.approx(narrow)
    two = one(tmp_path / "two", BASELINE, few, fewer, baseline=at_other_times())
    assert two.runs == 2


def test_studies_made_within_the_hour_make_a_change_of_the_machine_no_surer(tmp_path: Path) -> None:
    then = (10.0, 10.6, 9.5, 10.2)
    alone, many = (
        one(tmp_path / str(count), BASELINE, *made, baseline=at_other_times(*then))
        for count, made in ((1, [a_study(11.2)]), (10, [a_study(11.2) for _ in range(10)]))
    )
    assert (alone.outcome, alone.runs) == ("inconclusive", 1)
    assert (many.outcome, many.runs) == ("inconclusive", 10)
    assert (many.low, many.high) == (pytest.approx(alone.low), pytest.approx(alone.high))


def test_the_ratio_is_of_the_means_of_the_studies_logs(tmp_path: Path) -> None:
    then = at_other_times(10.0, 10.0, 12.0)
    for book in then[:2]:
        for repeat in (6, 7, 8):
            add(book, "onnx-grpc", [10.0] * 6, repeat=repeat)
    found = one(tmp_path, BASELINE, a_study(11.0), baseline=then)
    assert found.value == pytest.approx(11 / (10 * 10 * 12) ** (1 / 3), rel=2e-3)


@pytest.mark.parametrize("count", [1, 2])
def test_a_baseline_of_fewer_than_three_studies_tells_nothing(tmp_path: Path, count: int) -> None:
    found = one(tmp_path, BASELINE, a_study(20.0), baseline=at_other_times()[:count])
    assert (found.outcome, found.value, found.more_repeats) == ("inconclusive", None, None)
    assert found.sentence == (
        f"{CELL}: the two were not measured in turns, and how much the machine changes from one time to "
        "another is not known: measure them in turns, or make the baseline of 3 studies or more."
    )


def test_a_study_of_the_baseline_without_a_run_that_counts_is_none(tmp_path: Path) -> None:
    then = at_other_times()
    for repeat in range(1, 6):
        then[1].caveat({"cell": CELL, "repeat": repeat}, "client-bound", "one core was full")
    found = one(tmp_path, BASELINE, a_study(), baseline=then)
    assert found.outcome == "inconclusive"
    assert "make the baseline of 3 studies or more" in found.sentence
