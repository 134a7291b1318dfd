"""Which runs count, and what is said of the others."""

from pathlib import Path

import pytest

from reports.gates.source import Counted, Counting
from reports.gates.thresholds import parse_gates
from tests.reports.builder import Book
from tests.reports.gates.book import a_book, add, require, source

CELL = "onnx-http/b1/c1"


def counted(folder: Path, book: Book, column: str, *thresholds: str) -> Counted:
    book.footer()
    found = source(folder, book)
    gates = parse_gates("".join(thresholds) or require("failures <= 1"), "thresholds.toml")
    return Counting(gates.thresholds, {}).counted(found.runs[CELL], found.cells[CELL], column)


def two_runs(**second: object) -> Book:
    """Of 1,200 requests each; the second one as asked."""
    book = a_book()
    add(book, "onnx-http", [10] * 6)
    add(book, "onnx-http", [10] * 6, repeat=2, **second)  # type: ignore[arg-type]
    return book


def test_runs_that_nothing_is_wrong_with_count(tmp_path: Path) -> None:
    found = counted(tmp_path, two_runs(), "latency_p99_ms")
    assert ([run.repeat for run in found.runs], found.said) == ([1, 2], "")


@pytest.mark.parametrize("status", ["aborted", "failed"])
@pytest.mark.parametrize("column", ["latency_p99_ms", "failure_ratio", "images_per_s"])
def test_a_run_that_was_cut_off_counts_for_nothing(tmp_path: Path, status: str, column: str) -> None:
    found = counted(tmp_path, two_runs(status=status), column)
    assert ([run.repeat for run in found.runs], found.said) == ([1], f"1 run left out ({status})")


def test_a_client_bound_run_counts_for_nothing(tmp_path: Path) -> None:
    book = two_runs()
    for repeat in (1, 2):
        book.caveat({"cell": CELL, "repeat": repeat}, "client-bound", "one core was full")
    found = counted(tmp_path, book, "latency_p99_ms")
    assert (found.runs, found.said) == ((), "2 runs left out (client-bound)")


def test_failures_disqualify_nothing_since_they_are_judged_themselves(tmp_path: Path) -> None:
    found = counted(tmp_path, two_runs(failed={0: 5}), "latency_p99_ms")
    assert len(found.runs) == 2


@pytest.mark.parametrize("column", ["failure_ratio", "failures", "abandoned"])
def test_a_run_without_a_success_counts_for_its_failures_alone(tmp_path: Path, column: str) -> None:
    book = two_runs(each=0, failed={0: 5, 1: 5})
    assert len(counted(tmp_path / "a", book, column).runs) == 2
    assert counted(tmp_path / "b", book, "latency_p99_ms").said == "1 run left out (no-data)"


@pytest.mark.parametrize("column", ["failure_ratio", "failures", "abandoned"])
def test_a_run_without_any_request_counts_for_nothing(tmp_path: Path, column: str) -> None:
    book = two_runs(each=0)
    assert counted(tmp_path, book, column).said == "1 run left out (no results)"


def test_a_percentile_of_too_few_results_does_not_count_unless_runs_are_pooled(tmp_path: Path) -> None:
    book = two_runs(each=100)
    found = counted(tmp_path / "a", book, "latency_p99_ms")
    longer = "measure longer: --iterations or --seconds"
    assert found.said == f"1 run left out (fewer than 1,000 results, {longer})"
    assert len(counted(tmp_path / "b", book, "latency_p95_ms").runs) == 2
    whole = source(tmp_path / "c", book)
    pooled = Counting().counted(whole.runs[CELL], whole.cells[CELL], "latency_p99_ms", pooled=True)
    assert (len(pooled.runs), pooled.said) == (2, "")


@pytest.mark.parametrize("column", ["images_per_s", "requests_per_s", "offered_per_s"])
def test_a_rate_of_open_load_is_what_was_asked(tmp_path: Path, column: str) -> None:
    book = a_book()
    cell = book.add_open("onnx-http", 50, {"w0": [10_000_000] * 300})["cell"]
    book.footer()
    found = source(tmp_path, book)
    (rate, latency) = (
        Counting().counted(found.runs[cell], found.cells[cell], name) for name in (column, "latency_p95_ms")
    )
    assert rate.said == f"1 run left out ({column} of open-loop load is what was asked: bound a latency)"
    assert (len(latency.runs), latency.said) == (1, "")


def test_a_run_whose_value_is_unknown_does_not_count(tmp_path: Path) -> None:
    found = counted(tmp_path, two_runs(), "gpu_power_w")
    assert (found.runs, found.said) == ((), "2 runs left out (gpu_power_w is not known)")


def test_bounds_on_evidence_leave_out_runs_of_the_cells_that_they_are_of(tmp_path: Path) -> None:
    for number, (fields, kept) in enumerate(
        (
            ({}, 1),
            ({"endpoint": "'onnx-http'"}, 1),
            ({"endpoint": "'onnx-grpc'"}, 2),
            ({"severity": "'warn'"}, 2),
        )
    ):
        bound = require("requests >= 1000", **fields)
        found = counted(tmp_path / str(number), two_runs(each=150), "images_per_s", bound)
        assert len(found.runs) == kept
        if kept == 1:
            assert found.said == "1 run left out (requests >= 1000 is not kept)"


def test_evidence_that_is_unknown_is_no_evidence_and_bounds_do_not_judge_themselves(tmp_path: Path) -> None:
    unknown = counted(tmp_path / "a", two_runs(), "images_per_s", require("worker_cpu_pct <= 80"))
    assert unknown.said == "2 runs left out (worker_cpu_pct is not known)"
    itself = counted(tmp_path / "b", two_runs(each=150), "requests", require("requests >= 1000"))
    assert len(itself.runs) == 2
