"""The highest rate that meets a bound: what a search's runs come to, its table and its sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.study.study import load_study
from reports.topics.load.rate_search import find_bound
from tests.reports.answers import told
from tests.reports.builder import Book
from tests.reports.open_load import MS, at_rate, notes_at, rates, searched, texts

TITLE = "Highest rate that meets p99 ≤ 100 ms"
ONCE = "not confirmed: one run met it"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("p99<=100", "p99 ≤ 100 ms"),
        ("p99.9 <= 12.5 ms", "p99.9 ≤ 12.5 ms"),
        ("p50<=7", "p50 ≤ 7 ms"),
        ("p42<=7", None),
        ("", None),
        (None, None),
    ],
)
def test_the_bound_is_read_from_the_options(tmp_path: Path, option: str, text: str | None) -> None:
    bound = find_bound(load_study(searched(option).write(tmp_path)))
    assert (str(bound) if bound else None) == text


def test_the_highest_rate_stands_beside_the_next_that_missed(tmp_path: Path) -> None:
    book = searched()
    for rate, p99_ms in ((50, 40), (200, 300), (100, 60), (150, 101)):
        at_rate(book, rate, p99_ms)
    table = rates(book, tmp_path)
    assert table.title == TITLE
    assert table.heads[2:] == (
        "rate/s",
        "p99 ms",
        "images/s",
        "confirmed by",
        "not met at",
        "its p99 ms, or why",
        "runs made",
    )
    assert texts(table) == [["onnx-http", "1", "100 (60–190)", "–", "100", ONCE, "150", "101", "4"]]
    assert table.notes == ()


def test_where_no_rate_met_the_bound_it_says_so(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 20, 120)
    at_rate(book, 10, 110)
    assert texts(rates(book, tmp_path)) == [
        ["onnx-http", "1", "none met it", "–", "–", "–", "10", "110", "2"]
    ]


def test_where_every_rate_met_the_bound_it_says_so(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 20, 30)
    table = rates(book, tmp_path)
    assert texts(table) == [["onnx-http", "1", "20", "–", "20.0", "not reached: 20/s met it", "–", "–", "1"]]
    assert notes_at(table, 0, 6) == ["no higher rate was tried"]


@pytest.mark.parametrize(
    ("second", "met"),
    [
        ({"p99_ms": 90}, "20"),
        ({"p99_ms": 110}, "10"),
        ({"p99_ms": 90, "dropped": 1}, "10"),
        ({"p99_ms": 90, "failures": {"refused": 1}}, "10"),
        # it says nothing of the server
        ({"p99_ms": 110, "status": "aborted"}, "20"),
    ],
)
def test_a_rate_meets_it_in_every_run_that_tells(tmp_path: Path, second: dict[str, Any], met: str) -> None:
    book = searched()
    at_rate(book, 10, 30)
    at_rate(book, 20, 80)
    at_rate(book, 20, **second, repeat=2)
    assert texts(rates(book, tmp_path))[0][2].partition(" ")[0] == met


def test_a_lower_rate_that_missed_is_told(tmp_path: Path) -> None:
    book = searched()
    for rate, p99_ms in ((10, 30), (20, 130), (30, 40), (40, 140)):
        at_rate(book, rate, p99_ms)
    table = rates(book, tmp_path)
    assert texts(table)[0][2:7] == ["30 (8.40 or more)", "–", "30.0", ONCE, "40"]
    assert notes_at(table, 0, 2) == ["at the lower 20/s it was not met"]


def confirmed(book: Book, rate: float, p99s_ms: Sequence[float], first: int = 1) -> None:
    """Runs of 1,000 requests that are to confirm a rate."""
    for repeat, p99_ms in enumerate(p99s_ms, first):
        at_rate(book, rate, p99_ms, repeat=repeat)
        book.header["plan"][-1]["confirming"] = True


def test_a_confirmed_rate_has_the_percentile_of_the_runs_that_confirmed_it(tmp_path: Path) -> None:
    """Not that of the search's run at the same rate, which was chosen."""
    book = searched()
    for rate, p99_ms in ((50, 40), (100, 130), (70, 50), (80, 60)):
        at_rate(book, rate, p99_ms)
    confirmed(book, 70, (80, 90, 85), first=2)
    table = rates(book, tmp_path)
    (row,) = texts(table)
    assert row[2] == "70 (70–190)"
    assert row[3] == "85 (73–98)"
    assert row[4:] == ["70.0 (69.9–70.1)", "3 runs of 1,000 requests", "100", "130", "7"]
    said = told(load_study(tmp_path))[0]
    assert "onnx-http 70/s at batch 1, confirmed by 3 runs of 1,000 requests: p99 85 ms (73–98) (" in said
    assert "100/s did not; the highest is within 70–190/s, 95 %" in said


def test_of_confirming_runs_the_smallest_is_told_and_a_lower_rate_that_missed_is_not(tmp_path: Path) -> None:
    book = searched()
    for rate, p99_ms in ((60, 130), (100, 130)):
        at_rate(book, rate, p99_ms)
    at_rate(book, 100, 160, repeat=2)
    confirmed(book, 70, (80, 90))
    book.add_open("onnx-http", 70, {"w0": [40 * MS] * 1_500}, repeat=3)
    book.header["plan"][-1]["confirming"] = True
    table = rates(book, tmp_path)
    assert texts(table)[0][5:8] == ["3 runs of 1,000 requests", "100", "160"]
    assert notes_at(table, 0, 2) == []


@pytest.mark.parametrize("p99s_ms", [(80, 90), (80, 90, 110), (80, 90, 110, 95)])
def test_two_of_three_confirm_nothing(tmp_path: Path, p99s_ms: Sequence[float]) -> None:
    book = searched()
    for rate, p99_ms in ((50, 40), (100, 130)):
        at_rate(book, rate, p99_ms)
    confirmed(book, 70, p99s_ms)
    assert texts(rates(book, tmp_path))[0][5].startswith("not confirmed: ")


def test_what_no_rate_missed_is_not_confirmed(tmp_path: Path) -> None:
    """As older studies have it: three runs at the highest rate that was tried, which all met the bound."""
    book = searched()
    at_rate(book, 2_048, 40)
    at_rate(book, 4_096, 50)
    confirmed(book, 4_096, (50, 50, 50), first=2)
    table = rates(book, tmp_path)
    assert texts(table)[0][2:6] == ["4096", "–", "4,100 (4,090–4,100)", "not reached: 4096/s met it"]
    assert told(load_study(tmp_path))[0].endswith(
        "onnx-http at batch 1 not reached: 4096/s met it (no higher rate was tried)."
    )


def test_each_endpoint_and_batch_is_searched_by_itself(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 20, 30, "pytorch-http")
    at_rate(book, 20, 30, batch=4)
    at_rate(book, 30, 30)
    book.endpoint("pytorch-http", "a")
    book.endpoint("onnx-http", "b")
    assert [row[:3] for row in texts(rates(book, tmp_path))] == [
        ["pytorch-http", "1", "20"],
        ["onnx-http", "1", "30"],
        ["onnx-http", "4", "20"],
    ]


def test_the_finding_says_what_was_found_and_how_far_it_carries(tmp_path: Path) -> None:
    book = searched()
    for rate, p99_ms in ((100, 60), (150, 101)):
        at_rate(book, rate, p99_ms)
    at_rate(book, 20, 130, "pytorch-http")
    assert told(load_study(book.write(tmp_path)))[:1] == (
        f"Highest rate: With p99 ≤ 100 ms: onnx-http at batch 1 {ONCE} at 100/s (150/s did not; the highest "
        "is within 60–260/s, 95 %); pytorch-http none at batch 1 (even 20/s did not).",
    )
