"""Answers that no model computed: their share, from counters and headers, and what it does to a run."""

import csv
import io
from pathlib import Path

import pytest

from reports.cells_csv.columns import render_csv
from reports.study.study import load_study
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.lines import triton

REQUESTS, MS = 400, 1_000_000


def told(hits: int | None, of_headers: int | None = None) -> Book:
    """A study of two endpoints, of which the faster one has a cache, by its counters, or by its headers."""
    book = Book()
    counters = triton(REQUESTS, 1, 3 * MS)
    cache = {} if hits is None else {"cache_hits": hits, "cache_queries": REQUESTS, "cache_ns": hits * 1_000}
    tag = book.add("onnx-http", 1, 1, {"w0": [4 * MS] * REQUESTS}, counters=counters | cache)
    if of_headers is not None:
        window = next(one for one in book.of(tag) if one["kind"] == "window" and one["phase"] == "measure")
        window |= {"cache_hits": of_headers, "cache_queries": max(of_headers, 1)}
    book.add("onnx-grpc", 1, 1, {"w0": [60 * MS] * REQUESTS}, counters=triton(REQUESTS, 1, 50 * MS))
    return book


@pytest.mark.parametrize(
    ("hits", "of_headers", "share", "invalid"),
    [
        (None, None, "", False),
        (0, None, "0.0", False),
        (4, None, "0.01", False),
        (5, None, "0.0125", True),
        (400, None, "1.0", True),
        (0, 300, "1.0", True),
        (None, 0, "0.0", False),
    ],
)
def test_the_share_and_whether_it_invalidates(
    tmp_path: Path, hits: int | None, of_headers: int | None, share: str, invalid: bool
) -> None:
    study = load_study(told(hits, of_headers).write(tmp_path))
    first, second = csv.DictReader(io.StringIO(render_csv(study)))
    assert (first["cache_hit_share"], second["cache_hit_share"]) == (share, "")
    assert ("answers-from-cache" in first["caveats"].split(";")) == invalid
    assert study.runs[0].tainted == invalid
    assert row(study, "Best").startswith("onnx-grpc:" if invalid else "onnx-http")
