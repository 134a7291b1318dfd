"""Which percentiles a run has too few results for, in words."""

from pathlib import Path

import pytest

from tests.reports.builder import Book
from tests.reports.lines import triton
from tests.reports.study.test_fold import folded, text_of

MS = 1_000_000


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (10, "n=10: p50, p90, p95, p99 and p99.9 are not shown"),
        (60, "n=60: p90 is doubtful, p95, p99 and p99.9 are not shown"),
        (999, "n=999: p99 is doubtful, p99.9 is not shown"),
        (1_000, "n=1,000: p99.9 is not shown"),
        (5_000, "n=5,000: p99.9 is doubtful"),
        (10_000, ""),
    ],
)
def test_percentiles_of_too_few_results(count: int, said: str, tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * count}, counters=triton(count, 1, MS))
    run = folded(book, tmp_path)
    assert (text_of(run, "few-samples") if said else "") == said
    assert ("few-samples" in {doubt.code for doubt in run.caveats}) == bool(said)
