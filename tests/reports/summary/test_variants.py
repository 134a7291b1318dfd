"""Cells of several variants: what a plan tells of them, and that no table or sentence mixes them."""

import csv
import io
from pathlib import Path

from reports.cells_csv.columns import render_csv
from reports.study.study import Study, load_study
from reports.summary.summary import Way
from reports.topics.load.open_load import open_finding, open_load
from reports.topics.payloads.matrix import floors, matrix_tables
from reports.topics.payloads.payloads import protocols_map
from tests.reports.answers import row, told
from tests.reports.builder import Book
from tests.reports.contention_book import axes_of
from tests.reports.lines import Record
from tests.reports.open_load import at_rate, rates, searched, texts

MS = 1_000_000
SHARED, OWN = axes_of("R2", "") | {"variant": "shared"}, axes_of("R4", "") | {"variant": "per-user"}


def serial(book: Book, endpoint: str, each_ms: float, axes: Record, repeat: int = 1) -> Record:
    return book.add(endpoint, 1, 1, {"w0": [round(each_ms * MS)] * 40}, repeat=repeat, axes=axes)


def both(folder: Path) -> Study:
    """Each protocol with shared channels at 100 and 50 images/s, and with its own at 40 and 80."""
    book = Book()
    for endpoint, axes, each_ms in (
        *(("onnx-grpc", OWN, 12.5), ("onnx-http", OWN, 25), ("onnx-http", SHARED, 10)),
        ("onnx-grpc", SHARED, 20),
    ):
        for repeat in (1, 2, 3):
            serial(book, endpoint, each_ms, axes, repeat)
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.endpoint("onnx-grpc", "127.0.0.1:8011")
    book.footer()
    return load_study(book.write(folder))


def table(study: Study, title: str) -> list[list[str]]:
    return next(texts(found) for found in matrix_tables(study) if found.title == title)


def test_rows_are_per_endpoint_and_variant_in_an_order_no_seed_shuffles(tmp_path: Path) -> None:
    study = both(tmp_path)
    assert table(study, "Serial throughput") == [
        ["onnx-http shared", "100 (99.8–100)"],
        ["onnx-http per-user", "40.0 (39.9–40.1)"],
        ["onnx-grpc shared", "50.0 (49.9–50.1)"],
        ["onnx-grpc per-user", "80.0 (79.8–80.2)"],
    ]
    assert study.ways[0] == Way("onnx-http", "shared")


def test_protocols_are_paired_within_a_variant(tmp_path: Path) -> None:
    study = both(tmp_path)
    assert texts(protocols_map(study)) == [
        ["onnx shared", "1", "▼ 0.500× (0.499–0.501)"],
        ["onnx per-user", "1", "▲ 2.000× (1.996–2.004)"],
    ]
    assert row(study, "HTTP or gRPC").startswith(
        "onnx shared: HTTP faster at batch 1; onnx per-user: gRPC faster at batch 1. "
    )
    each = "onnx shared 0.500× (0.499–0.501) at batch 1; onnx per-user 2.000× (1.996–2.004) at batch 1"
    assert each in row(study, "HTTP or gRPC")
    assert row(study, "Best").startswith("onnx-http shared: 100 images/s (95 % CI 99.8–100), p50 10.0 ms")
    assert "Next: onnx-grpc per-user 0.800× (0.798–0.802), onnx-grpc shared 0.500×" in row(study, "Best")


def test_protocols_without_a_variant_in_common_are_no_pair(tmp_path: Path) -> None:
    book = Book()
    serial(book, "onnx-http", 10, SHARED)
    serial(book, "onnx-grpc", 20, OWN)
    study = load_study(book.write(tmp_path))
    assert protocols_map(study).rows == ()
    assert row(study, "HTTP or gRPC") == ""


def test_a_floor_stands_under_its_own_variant(tmp_path: Path) -> None:
    book = Book()
    for axes, each_ms in ((SHARED, 10), (OWN, 20)):
        serial(book, "onnx-grpc", each_ms, axes)
        serial(book, "onnx-grpc-floor", each_ms / 10, axes)
    for name in ("onnx-grpc", "onnx-grpc-floor"):
        book.endpoint(name, "127.0.0.1:8011")
    found = texts(floors(load_study(book.write(tmp_path))))
    assert found == [
        ["onnx-grpc/b1/c1/shared", "10.0", "1.0", "100", "1,000"],
        ["onnx-grpc/b1/c1/per-user", "20.0", "2.0", "50.0", "500"],
    ]


def test_open_load_and_searches_are_told_by_variant(tmp_path: Path) -> None:
    book = searched()
    for axes, p99_ms in ((SHARED, 60), (OWN, 40)):
        at_rate(book, 50, p99_ms, "onnx-grpc", axes=axes)
        at_rate(book, 100, 4 * p99_ms, "onnx-grpc", axes=axes)
    found = rates(book, tmp_path)
    assert [[row[0], row[2].partition(" ")[0], row[3]] for row in texts(found)] == [
        ["onnx-grpc shared", "50", "–"],
        ["onnx-grpc per-user", "50", "–"],
    ]
    study = load_study(tmp_path)
    assert [row[0] for row in texts(open_load(study))] == ["onnx-grpc shared"] * 2 + [
        "onnx-grpc per-user"
    ] * 2
    assert open_finding(study).startswith(
        "onnx-grpc shared kept 100/s (p99 240 ms); onnx-grpc per-user kept 100/s"
    )
    assert "onnx-grpc shared at batch 1 not confirmed: one run met it at 50/s" in told(study)[0]


def test_a_plan_fills_the_columns_of_its_axes(tmp_path: Path) -> None:
    book = Book(options={"channels": "pool:2", "client": "library"})
    serial(book, "onnx-http", 10, axes_of("R0", "lan", many=False))
    book.add("onnx-grpc", 1, 1, {"w0": [10 * MS] * 40})
    study = load_study(book.write(tmp_path))
    first, old = csv.DictReader(io.StringIO(render_csv(study)))
    names = ("channels", "link", "workers", "hosts", "cell")
    assert [first[name] for name in names] == ["per-user", "lan", "1", "1", "onnx-http/b1/c1"]
    assert [old[name] for name in names] == ["pool:2", "", "1", "1", "onnx-grpc/b1/c1"]
    assert [run.client for run in study.runs] == ["prepared", "library"]
