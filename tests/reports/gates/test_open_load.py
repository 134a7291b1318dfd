"""Open-loop load: its rates are what was asked for, and so say nothing of the server."""

from pathlib import Path

import pytest

from tests.reports.builder import Book
from tests.reports.gates.book import MS, a_book, judged, own, require


def opened() -> Book:
    """HTTP at 10 ms, gRPC at 100 ms, and both at 50 requests/s."""
    book = a_book()
    for endpoint, ms in (("onnx-http", 10), ("onnx-grpc", 100)):
        for repeat in (1, 2, 3, 4):
            book.add_open(endpoint, 50, {"w0": [ms * MS + repeat] * 300}, repeat=repeat)
    book.footer()
    return book


@pytest.mark.parametrize("column", ["images_per_s", "requests_per_s", "offered_per_s"])
def test_a_rate_that_was_asked_for_decides_nothing(tmp_path: Path, column: str) -> None:
    ratio = require("onnx-grpc / onnx-http >= 0.95", of=f"'{column}'")
    pair, *alone = own(judged(tmp_path, ratio + require(f"{column} >= 1"), opened()))
    why = f"counts: 4 runs left out ({column} of open-loop load is what was asked: bound a latency)."
    assert (pair.outcome, [one.outcome for one in alone]) == ("inconclusive", ["inconclusive"] * 2)
    assert pair.sentence.endswith(f"no run of onnx-grpc/b1/r50 {why}")
    assert alone[0].sentence == f"onnx-http/b1/r50: no run of it {why}"
    assert alone[0].more_repeats is None


def test_its_latencies_are_compared(tmp_path: Path) -> None:
    ratio = require("onnx-grpc / onnx-http <= 1", of="'latency_p50_ms'")
    (found,) = own(judged(tmp_path, ratio, opened()))
    assert (found.outcome, found.value) == ("fail", pytest.approx(10, rel=0.01))
