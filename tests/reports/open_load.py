"""Runs with open-loop load, and tables as tests look at them."""

from pathlib import Path
from typing import Any

from reports.page.table import Table
from reports.study.study import load_study
from reports.topics.load.rate_search import highest_rates
from tests.reports.builder import Book
from tests.reports.lines import Record

MS = 1_000_000


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def notes_at(table: Table, row: int, column: int) -> list[str]:
    return [table.notes[mark - 1] for mark in table.rows[row][column].marks]


def searched(option: str = "p99<=100") -> Book:
    return Book(options={"find_rate": option})


def at_rate(book: Book, rate: float, p99_ms: float, endpoint: str = "onnx-http", **more: Any) -> Record:
    """One run of 1,000 requests whose p99 is as said."""
    slow, quick = round(p99_ms * MS), round(p99_ms * MS / 2)
    return book.add_open(endpoint, rate, {"w0": [quick] * 980 + [slow] * 20}, **more)


def rates(book: Book, folder: Path) -> Table:
    """What a search found."""
    table = highest_rates(load_study(book.write(folder)))
    assert table is not None
    return table
