"""What is said of open-loop load that searched for no bound: which rates were kept, and which were not."""

from pathlib import Path

from reports.study.study import load_study
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.open_load import MS, at_rate

ONCE = "a rate that was run once may be kept by chance"


def said(book: Book, folder: Path) -> str:
    return row(load_study(book.write(folder)), "Rates kept")


def test_the_highest_rate_that_was_kept_stands_beside_what_was_disqualified(tmp_path: Path) -> None:
    book = Book()
    for rate, p99_ms in ((40, 20), (60, 24.1)):
        at_rate(book, rate, p99_ms, "pytorch-http")
    for rate in (100, 150):
        at_rate(book, rate, 90, "pytorch-http", dropped=7)
    book.add_open("pytorch-http", 200, {"w0": []}, phase_s=1, status="failed", note="it died")
    study = load_study(book.write(tmp_path))
    assert row(study, "Rates kept") == (
        "pytorch-http kept 60/s (p99 24.1 ms); not 100/s and 150/s (dropped-arrivals), "
        f"200/s (failed); {ONCE}."
    )
    assert "3 of 5 runs invalidated (dropped-arrivals 2, " in row(study, "Confidence")


def test_failures_below_all_and_endpoints_that_kept_nothing_are_told(tmp_path: Path) -> None:
    book = Book()
    at_rate(book, 10, 20, failures={"timeout": 1})
    at_rate(book, 20, 20)
    at_rate(book, 10, 20, "openvino-grpc", status="aborted")
    study = load_study(book.write(tmp_path))
    assert row(study, "Rates kept") == (
        "onnx-http kept 20/s (p99 20.0 ms); not 10/s (failures); "
        f"openvino-grpc kept none; not 10/s (aborted); {ONCE}."
    )
    assert "2 of 3 runs invalidated (" in row(study, "Confidence")


def test_with_too_few_results_for_p99_it_is_p95(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 10, {"w0": [20 * MS] * 200})
    book.add_open("pytorch-http", 10, {"w0": [30 * MS] * 199})
    assert said(book, tmp_path) == (
        "onnx-http kept 10/s (p95 20.0 ms); pytorch-http kept 10/s (p95 30.0 ms); "
        f"{ONCE}; some have fewer than the 200 results that p95 needs."
    )


def test_the_results_of_repeats_count_together(tmp_path: Path) -> None:
    book = Book()
    for repeat in (1, 2):
        book.add_open("onnx-http", 10, {"w0": [20 * MS] * 500}, repeat=repeat)
        book.add_open("pytorch-http", 10, {"w0": [30 * MS] * 100}, repeat=repeat)
    at_rate(book, 10, 40, "trt-http")
    book.add_open(
        "trt-http", 50, {"w0": [MS] * 1_000}, axes={"variant": "ramp", "profile": "ramp:10,hold:60"}
    )
    assert said(book, tmp_path) == (
        "onnx-http kept 10/s (p99 20.0 ms); pytorch-http kept 10/s (p95 30.0 ms); "
        f"trt-http kept 10/s (p99 40.0 ms); {ONCE}."
    )


def test_repeats_that_differ_are_told_apart(tmp_path: Path) -> None:
    book = Book()
    for repeat, dropped in ((1, 0), (2, 3), (3, 0)):
        at_rate(book, 50, 20 + repeat, repeat=repeat, dropped=dropped)
    assert said(book, tmp_path) == (
        "onnx-http kept 50/s in 2 of 3 runs (p99 21.0 ms); not 50/s in 1 of 3 runs (dropped-arrivals)."
    )


def test_batches_and_arrivals_are_named_where_there_are_several(tmp_path: Path) -> None:
    book = Book()
    at_rate(book, 50, 20)
    at_rate(book, 20, 30, batch=4, arrivals="poisson")
    assert said(book, tmp_path).startswith(
        "onnx-http at batch 1 with constant arrivals kept 50/s (p99 20.0 ms); "
        "onnx-http at batch 4 with poisson arrivals kept 20/s (p99 30.0 ms); "
    )


def test_closed_load_beside_it_has_its_own_sentence(tmp_path: Path) -> None:
    book = Book()
    at_rate(book, 50, 20)
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, status="failed")
    study = load_study(book.write(tmp_path))
    assert row(study, "Rates kept") == f"onnx-http kept 50/s (p99 20.0 ms); {ONCE}."
    assert row(study, "Best") == (
        "No endpoint can be called best: every run under closed-loop load is invalidated."
    )
