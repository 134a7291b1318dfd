"""Goodput and classes of requests in the report: their tables, and their rows on the first screen."""

from pathlib import Path

import pytest

from reports.study.study import Study, load_study
from reports.topics.load.classes import class_finding, request_classes
from reports.topics.load.goodput import goodput, goodput_finding
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.mixed_book import a_mix, mixed_second
from tests.reports.open_load import notes_at, texts


def a_study(folder: Path, slo: str = "p95<=50", seconds: int = 20, runs: int = 3) -> Study:
    """In each second 99 of 100 are good at 2 users, 90 at 8 users; those of batch 16 are slow."""
    book = Book(options={"slo": slo} if slo else {})
    limit = 50.0 if slo else None
    for repeat in range(1, runs + 1):
        for level, slow in ((2, 1), (8, 10)):
            second = {1: [10.0] * 80, 16: [40.0] * (20 - slow) + [80.0] * slow}
            windows = [mixed_second({}, at, second, limit) for at in range(seconds)]
            a_mix(book, windows, level, repeat)
    book.footer()
    return load_study(book.write(folder))


def test_the_table_says_of_each_cell_whether_the_objective_was_kept(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    table = goodput(study)
    assert table is not None
    assert table.title == "Goodput: p95 ≤ 50 ms"
    heads = ("cell", "good (95 % CI)", "objective", "kept", "goodput/s", "requests due", "failed", "dropped")
    assert table.heads == heads
    first, second = texts(table)
    assert first == ["onnx-http/mix/c2", "99 % (98.71–99.23)", "95 %", "met", "99.0", "6,000", "0", "0"]
    assert second[1:4] == ["90 % (89.21–90.74)", "95 %", "not met"]


@pytest.mark.parametrize(
    ("seconds", "runs", "said"),
    [
        (20, 3, "onnx-http keeps p95 ≤ 50 ms at 2 users (99 % good, 99/s)."),
        # the interval of 4 seconds is none
        (4, 1, "onnx-http is not known to keep p95 ≤ 50 ms (99 % good at 2 users)."),
    ],
)
def test_the_first_screen_has_the_best_load_that_kept_it(
    seconds: int, runs: int, said: str, tmp_path: Path
) -> None:
    study = a_study(tmp_path, seconds=seconds, runs=runs)
    assert goodput_finding(study) == said
    assert f"Goodput: {said}" in [answer.text for answer in build_page(study, "x").answers]


def test_where_no_load_kept_it_the_best_share_is_said(tmp_path: Path) -> None:
    study = a_study(tmp_path, "p99.9<=50")
    assert goodput_finding(study) == (
        "onnx-http keeps p99.9 ≤ 50 ms at no load that was run (at best 99 % good, at 2 users)."
    )


def test_a_search_for_the_objective_answers_itself(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    study.header["options"]["find_rate"] = "slo"
    assert goodput_finding(study) == ""
    assert goodput(study) is not None


def test_a_study_without_an_objective_has_no_goodput(tmp_path: Path) -> None:
    study = a_study(tmp_path, "")
    assert (goodput(study), goodput_finding(study)) == (None, "")
    table = request_classes(study)
    assert table is not None
    assert {row[-1] for row in texts(table)} == {"–"}


def test_each_class_stands_below_its_cell(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    table = request_classes(study)
    assert table is not None
    whole, small, large, *_ = texts(table)
    assert whole[:5] == ["onnx-http/mix/c2", "all", "–", "100 %", "6,000"]
    assert small[1:5] == ["b1", "80.0 %", "80.0 %", "4,800"]
    assert large[1:5] == ["b16", "20.0 %", "20.0 %", "1,200"]
    assert [row[5:] for row in (whole, small, large)] == [
        ["10.0 (10.0–10.0)", "40.0 (39.9–40.1)", "40.0", "0", "99 %"],
        ["10.0 (10.0–10.0)", "10.0 (10.0–10.0)", "10.0", "0", "100 %"],
        ["40.0 (39.9–40.1)", "40.0 (39.9–40.1)", "80.0", "0", "95 %"],
    ]
    assert class_finding(study) == "onnx-http: b16 is slowest, 8.0 times b1 (p95 80.0 ms against 10.0 ms)."


def test_too_few_of_a_class_have_no_percentile(tmp_path: Path) -> None:
    table = request_classes(a_study(tmp_path, seconds=2, runs=1))
    assert table is not None
    assert texts(table)[2][5:8] == ["40.0", "–", "–"]
    assert notes_at(table, 2, 6) == ["too few successes of the class for p95"]


def test_classes_that_take_as_long_are_said_to(tmp_path: Path) -> None:
    book = Book()
    a_mix(book, [mixed_second({}, at, {1: [10.0] * 80, 16: [10.2] * 20}) for at in range(10)])
    study = load_study(book.write(tmp_path))
    assert class_finding(study) == "onnx-http: all classes take about as long (p95 10.2 ms)."
