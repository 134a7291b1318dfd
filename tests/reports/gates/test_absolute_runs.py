"""Bounds on a column that are judged run by run: by the mean of repeats, or by the worst."""

from pathlib import Path

import pytest

from reports.gates.verdict import Verdict
from tests.reports.gates.book import a_book, add
from tests.reports.gates.test_absolute import CELL, one, steady


def test_repeats_take_three_and_are_judged_by_their_mean(tmp_path: Path) -> None:
    def found(name: str, bound: float, count: int) -> Verdict:
        book = a_book()
        for repeat in range(count):
            add(book, "onnx-http", [10.0] * 6, repeat=repeat + 1, each=190 + 10 * repeat)
        return one(tmp_path / name, f"images_per_s >= {bound}", book)

    kept, broken, few = found("a", 150, 3), found("b", 260, 3), found("c", 150, 2)
    assert (kept.outcome, kept.value, kept.runs) == ("pass", pytest.approx(200.0), 3)
    assert (kept.low, kept.high) == (pytest.approx(175.16, abs=0.01), pytest.approx(224.84, abs=0.01))
    assert (broken.outcome, found("d", 205, 3).outcome) == ("fail", "inconclusive")
    assert (few.outcome, few.more_repeats) == ("inconclusive", 1)
    assert few.sentence.startswith(f"{CELL}: 2 runs cannot tell how images_per_s varies; 1 more repeat would")


def test_facts_are_judged_by_the_worst_run(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10.0] * 6)
    add(book, "onnx-http", [20.0] * 6, repeat=2)
    failed = one(tmp_path / "a", "latency_max_ms <= 20", book)
    assert (failed.outcome, failed.value) == ("fail", pytest.approx(24.0, rel=1e-3))
    assert failed.sentence == (
        f"{CELL}: latency_max_ms 24.0 ms in the worst of 2 runs, at most 20.0 ms is required."
    )
    assert one(tmp_path / "b", "latency_max_ms <= 25", steady()).outcome == "pass"
    least = one(tmp_path / "c", "request_bytes >= 602113", steady(runs=1))
    assert (least.outcome, "602,000 bytes, at least" in least.sentence) == ("fail", True)


def test_evidence_that_lacks_is_inconclusive_and_never_a_fail(tmp_path: Path) -> None:
    found = one(tmp_path, "requests >= 5001", steady(20, runs=1))
    assert found.outcome == "inconclusive"
    assert found.sentence == (
        f"{CELL}: requests 4,000, at least 5,000 is required, and a run without that shows nothing."
    )


def test_what_is_tolerated_holds_for_facts_too(tmp_path: Path) -> None:
    outcomes = [
        one(tmp_path / least, "request_bytes <= 600000", steady(), least_effect=least).outcome
        for least in ("0", "0.003", "0.05")
    ]
    assert outcomes == ["fail", "fail", "pass"]


def test_failures_of_a_run_of_which_nothing_succeeded_fail(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10.0] * 6, each=0, failed=dict.fromkeys(range(6), 5))
    found = one(tmp_path, "failures <= 0", book)
    assert (found.outcome, found.value, found.note) == ("fail", 30, "")


def test_results_of_short_runs_are_pooled_for_a_percentile(tmp_path: Path) -> None:
    book = a_book()
    for repeat in range(1, 25):
        add(book, "onnx-http", [10.0] * 3, repeat=repeat, each=20)
    found = one(tmp_path, "latency_p95_ms <= 13", book)
    assert (found.outcome, found.runs, found.note) == ("pass", 24, "")
