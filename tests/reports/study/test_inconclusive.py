"""When a study allows no verdict, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.study.study import inconclusive_because, load_study
from tests.reports.builder import Book
from tests.reports.open_load import MS, at_rate, searched


def serial(*codes: str, status: str = "done", **more: Any) -> Book:
    """One run of 300 requests with some caveats, in a complete study."""
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 300}, status=status, **more)
    for code in codes:
        book.caveat(tag, code, "so it was")
    book.footer()
    return book


def search_with(*codes: str, **more: Any) -> Book:
    """A search of two runs, the second with some caveats."""
    book = searched()
    at_rate(book, 10, 30)
    tag = at_rate(book, 20, 30, **more)
    for code in codes:
        book.caveat(tag, code, "so it was")
    book.footer()
    return book


def all_failed(book: Book) -> Book:
    book.add("onnx-grpc", 1, 1, {"w0": []}, failures={"refused": 9})
    book.footer()
    return book


def ended(book: Book, *footer: str) -> Book:
    book.records.pop()
    if footer:
        book.footer(*footer)
    return book


def with_floor(*codes: str) -> Book:
    """A floor that is all that succeeded."""
    book = all_failed(Book())
    tag = book.add("onnx-http-floor", 1, 1, {"w0": [MS] * 300})
    for code in codes:
        book.caveat(tag, code, "so it was")
    return book


@pytest.mark.parametrize(
    ("book", "because"),
    [
        (serial(), ()),
        (with_floor("client-bound"), ("no-data",)),
        (serial("unsteady", "late-arrivals"), ()),
        (serial(failures={"timeout": 200}), ()),
        (serial("client-bound", "worker-lost", "client-bound"), ("client-bound", "worker-lost")),
        (serial(status="failed"), ("failed",)),
        (serial(drained=False), ("cut-short",)),
        (ended(serial(), "interrupted"), ("study-interrupted",)),
        (ended(serial()), ("study-unfinished",)),
        (all_failed(Book()), ("no-data",)),
        (all_failed(serial()), ("no-data",)),
        (search_with("client-bound", dropped=3, failures={"timeout": 1}), ()),
        (search_with(status="failed"), ()),
        (search_with(status="aborted"), ("aborted",)),
        (search_with("worker-lost", "users-missing"), ("worker-lost",)),
        (ended(search_with(), "failed"), ("study-failed",)),
        (all_failed(searched()), ("no-data",)),
        (all_failed(search_with()), ()),
    ],
)
def test_every_reason_is_given_once(tmp_path: Path, book: Book, because: tuple[str, ...]) -> None:
    assert inconclusive_because(load_study(book.write(tmp_path))) == because


def test_a_run_that_was_only_planned_is_no_reason(tmp_path: Path) -> None:
    book = serial()
    book.plan("onnx-grpc", 1, 1)
    assert inconclusive_because(load_study(book.write(tmp_path))) == ()


@pytest.mark.parametrize(("book", "because"), [(serial(), []), (serial("client-bound"), ["client-bound"])])
def test_study_json_says_it(tmp_path: Path, book: Book, because: list[str]) -> None:
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 0
    said = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert (said["inconclusive"], said["inconclusive_because"]) == (bool(because), because)
