"""A small study with every outcome, the thresholds that bring them, and verdicts made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.gates.verdict import Verdict
from tests.reports.builder import Book
from tests.reports.example import lognormal

EVIL = "<script>alert(1)</script>|`x`\n::error::\x1b[31m[red]@me\x00]]>"
THRESHOLDS = """\
[[threshold]]
require = "latency_p50_ms <= 30"
endpoint = "onnx-*"

[[threshold]]
require = "onnx-grpc / onnx-http >= 0.95"
of = "images_per_s"
name = "gRPC keeps up"

[[threshold]]
require = "latency_p99_ms <= 120"
endpoint = "onnx-http"

[[threshold]]
require = "latency_p50_ms <= 10"
endpoint = "onnx-http"
severity = "warn"

[[threshold]]
require = "images_per_s >= 50"
batch = 64
severity = "warn"

[[threshold]]
require = "failure_ratio <= 0.5"
"""
MADE = Verdict(
    threshold=1,
    line=3,
    title="latency_p95_ms <= 120",
    require="latency_p95_ms <= 120",
    severity="fail",
    cell="onnx-http/b1/c1",
    outcome="pass",
    sentence="onnx-http/b1/c1: latency_p95_ms 100 ms (95 % CI 95.0 ms to 106 ms), at most 120 ms is "
    "required.",
    note="",
    column="latency_p95_ms",
    at_most=True,
    ratio=False,
    bound=120.0,
    tolerated=120.0,
    value=100.0,
    low=95.0,
    high=106.0,
    runs=5,
    more_repeats=None,
)
FAILED = replace(
    MADE,
    outcome="fail",
    cell="onnx-grpc/b1/c1",
    sentence="onnx-grpc/b1/c1: latency_p95_ms 131 ms (95 % CI 128 ms to 134 ms), at most 120 ms is required.",
    value=131.0,
    low=128.0,
    high=134.0,
)
UNSURE = replace(
    MADE,
    threshold=2,
    line=7,
    title="gRPC keeps up",
    require="onnx-grpc / onnx-http >= 0.95",
    outcome="inconclusive",
    cell="onnx-grpc/b1/c1 / onnx-http/b1/c1",
    sentence="onnx-grpc/b1/c1 / onnx-http/b1/c1: ratio of images_per_s 0.93× (95 % CI 0.88× to "
    "0.98×), at least 0.95× is required (0.905× tolerated); 4 more repeats would decide, if like these.",
    note="1 run left out (client-bound)",
    column="images_per_s",
    at_most=False,
    ratio=True,
    bound=0.95,
    tolerated=0.95 / 1.05,
    value=0.93,
    low=0.88,
    high=0.98,
    more_repeats=4,
)
MISSING = replace(
    MADE,
    threshold=3,
    outcome="inconclusive",
    cell="no cell",
    sentence="no cell: the study has none that it is of: batch 64.",
    value=None,
    low=None,
    high=None,
    runs=0,
)
WARNED = replace(FAILED, threshold=4, severity="warn")
ALL = (MADE, WARNED, MISSING, UNSURE, FAILED)


def evil(verdict: Verdict) -> Verdict:
    """The same with an attack in every text that comes from outside."""
    texts = ("title", "require", "cell", "sentence", "note")
    return replace(verdict, **dict.fromkeys(texts, EVIL))


def study(**header: Any) -> Book:
    """Two ways in four repeats of 300 requests: HTTP at 20 ms, gRPC at 40."""
    book = Book(**header)
    for seed, (name, ms) in enumerate((("onnx-http", 20.0), ("onnx-grpc", 40.0))):
        book.endpoint(name, f"127.0.0.1:801{seed}")
        for repeat in range(1, 5):
            for batch in (1, 4):
                values = lognormal(100 * seed + 10 * repeat + batch, ms + batch - 1, 300)
                book.add(name, batch, 1, {"w0": values}, repeat=repeat)
    book.footer()
    return book


def judged_place(folder: Path, thresholds: str = THRESHOLDS, book: Book | None = None) -> Path:
    """A study's directory with thresholds beside the ledger."""
    place = (book or study()).write(folder)
    (place / "thresholds.toml").write_text(thresholds, encoding="utf-8")
    return place
