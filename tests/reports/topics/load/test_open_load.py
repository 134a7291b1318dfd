"""The table of open-loop load, and that of the generator's health."""

from pathlib import Path

from reports.fold.health import COARSE
from reports.study.study import Study, load_study
from reports.topics.load.open_load import open_load
from reports.topics.report import build_page
from reports.topics.runs.workers import generator_health
from tests.reports.builder import Book
from tests.reports.lines import health_line
from tests.reports.open_load import MS, at_rate, notes_at, searched, texts


def mixed(folder: Path) -> Study:
    """Two repeats at 100 a second, one of them dropping; one cell that was never run."""
    book = Book()
    at_rate(book, 100, 60, late=3)
    at_rate(book, 100, 80, repeat=2, dropped=5)
    at_rate(book, 50, 40, arrivals="poisson", failures={"timeout": 1})
    book.plan("onnx-grpc", 4, 12.5, arrivals="constant")
    return load_study(book.write(folder))


def test_the_table_of_open_load_has_medians_of_what_is_not_tainted(tmp_path: Path) -> None:
    table = open_load(mixed(tmp_path))
    assert table.heads == (
        *("endpoint", "batch", "arrivals", "asked/s", "offered/s", "images/s"),
        *("p50 ms", "p95 ms", "p99 ms", "late", "dropped"),
    )
    assert texts(table) == [
        ["onnx-grpc", "4", "constant", "12.5", "–", "–", "–", "–", "–", "–", "–"],
        ["onnx-http", "1", "constant", "100", "100", "100", "30.0", "30.0", "60.0", "3", "0"],
        ["onnx-http", "1", "poisson", "50", "50.0", "50.0", "20.0", "20.0", "40.0", "0", "0"],
    ]
    assert [notes_at(table, row, 8) for row in range(3)] == [
        ["not run"],
        [],
        ["invalidated: failures", "1 of 1,001 requests failed (0.0999 %)"],
    ]


def test_a_study_of_closed_load_has_no_table_of_open_load(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10})
    page = build_page(load_study(book.write(tmp_path)), "x")
    titles = [table.title for section in page.sections for table in section.tables]
    assert not {"Open-loop load", "Generator health"} & set(titles)


def test_the_table_of_health_marks_what_bound_the_client(tmp_path: Path) -> None:
    book = Book()
    tag = at_rate(book, 100, 60, late=3)
    stated = {"cpu_pct": 93.0, "cpu_wait_ns": 125 * MS, "gc_max_ns": 1_500_000}
    book.records.append(health_line(tag, "w0", lags_ns=[2 * MS], **stated))
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10})
    table = generator_health(load_study(book.write(tmp_path)))
    assert texts(table) == [
        ["onnx-http/b1/r100", "–", "1", "930", "93.0", "12.5", "2.0", "1.5", "0.0", "3", "0", "–"],
        ["onnx-http/b1/c1", "–", "1", "–", "–", "–", "–", "–", "–", "–", "0", "1.00 of 1"],
    ]
    assert notes_at(table, 0, 3) == [COARSE]
    assert notes_at(table, 1, 3) == []
    assert notes_at(table, 0, 0) == ["client-bound: worker w0 used 93.0 % of a core"]


def test_tables_of_open_load_are_on_the_page(tmp_path: Path) -> None:
    book = searched()
    tag = at_rate(book, 20, 30)
    book.records.append(health_line(tag, "w0"))
    page = build_page(load_study(book.write(tmp_path)), "x")
    titles = {section.heading: [table.title for table in section.tables] for section in page.sections}
    assert titles["Results"] == ["Highest rate that meets p99 ≤ 100 ms", "Open-loop load"]
    assert "Generator health" in titles["Workers and connections"]
