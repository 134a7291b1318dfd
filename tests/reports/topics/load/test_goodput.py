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
        (20, 3, "p95 ≤ 50 ms: met by onnx-http at 2 users (99 % good, 95 % CI 98.71–99.23, 99/s)."),
        # the interval of 4 seconds is none
        (4, 1, "p95 ≤ 50 ms: not known of onnx-http (99 % good at 2 users)."),
    ],
)
def test_the_first_screen_has_the_best_load_that_kept_it(
    seconds: int, runs: int, said: str, tmp_path: Path
) -> None:
    study = a_study(tmp_path, seconds=seconds, runs=runs)
    assert goodput_finding(study).startswith(said)
    assert any(answer.text.startswith(f"Goodput: {said}") for answer in build_page(study, "x").answers)


def test_where_no_load_kept_it_the_best_share_is_said(tmp_path: Path) -> None:
    study = a_study(tmp_path, "p99.9<=50")
    assert goodput_finding(study) == (
        "p99.9 ≤ 50 ms: met by onnx-http at no load that was run (99 % good, 95 % CI 98.71–99.23 at 2 users)."
        " Not met: --find-rate slo finds the highest rate at which it is."
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
    assert "good" not in table.heads
    study.header["options"]["slo"] = "soon"
    assert (goodput(study), goodput_finding(study)) == (None, "")


def test_each_class_stands_below_its_cell(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    table = request_classes(study)
    assert table is not None
    whole, small, large, *_ = texts(table)
    assert whole[:5] == ["onnx-http/mix/c2", "all", "", "100 %", "6,000"]
    assert small[1:5] == ["b1", "80.0 %", "80.0 %", "4,800"]
    assert large[1:5] == ["b16", "20.0 %", "20.0 %", "1,200"]
    assert [row[5:] for row in (whole, small, large)] == [
        ["10.0 (10.0–10.0)", "40.0 (39.9–40.1)", "40.0", "0", "99 %"],
        ["10.0 (10.0–10.0)", "10.0 (10.0–10.0)", "10.0", "0", "100 %"],
        ["40.0 (39.9–40.1)", "40.0 (39.9–40.1)", "80.0", "0", "95 %"],
    ]
    assert class_finding(study) == (
        "onnx-http: b16 is slowest, 8.00 times as slow as b1, "
        "by p95 80.0 ms (95 % CI 79.9–80.2) against 10.0 ms (10.0–10.0)."
    )


def test_too_few_of_a_class_have_no_percentile(tmp_path: Path) -> None:
    table = request_classes(a_study(tmp_path, seconds=2, runs=1))
    assert table is not None
    assert texts(table)[2][5:8] == ["40.0", "–", "–"]
    assert notes_at(table, 2, 6) == ["too few successes of the class for p95"]


@pytest.mark.parametrize(
    ("large_ms", "invalid", "said"),
    [
        ([10.2] * 20, False, "no class is shown to be slower (p95 10.2 ms at most)"),
        # 10 of b16 are too few even for its p50: b4 is not the slowest of all
        ([80.0], False, ""),
        ([80.0] * 20, True, ""),
    ],
)
def test_the_slowest_takes_results_of_every_class_and_a_valid_run(
    large_ms: list[float], invalid: bool, said: str, tmp_path: Path
) -> None:
    book = Book()
    second = {1: [10.0] * 80, 4: [10.1] * 40, 16: large_ms}
    tag = a_mix(book, [mixed_second({}, at, second) for at in range(10)])
    if invalid:
        book.caveat(tag, "client-bound", "worker w0 at 98 % CPU")
    assert class_finding(load_study(book.write(tmp_path))) == (f"onnx-http: {said}." if said else "")
