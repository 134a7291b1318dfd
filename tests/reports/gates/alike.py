"""Studies in which nothing changed: one cell or more, repeated, each repeat a little off."""

from collections.abc import Sequence
from typing import Any

from tests.reports.builder import Book

MS = 1_000_000
REQUESTS = 240
OFF = (1.00, 1.02, 0.99, 1.00, 1.03, 1.01, 0.98, 1.00, 1.02, 1.04)
"""By how many times the repeats are off, in pairs: +2 %, +1 %, -2 %, +2 %, +2 %."""


def repeated(book: Book, endpoint: str, off: Sequence[float] = OFF, **more: Any) -> None:
    """Repeats of one cell, of one user at 20 ms."""
    for repeat, factor in enumerate(off, 1):
        book.add(endpoint, 1, 1, {"w0": [round(20 * MS * factor)] * REQUESTS}, repeat=repeat, **more)


def alike_study(off: Sequence[float] = OFF, **header: Any) -> Book:
    """HTTP and gRPC, repeated."""
    book = Book(**header)
    for name, url in (("onnx-http", "127.0.0.1:8010"), ("onnx-grpc", "127.0.0.1:8011")):
        book.endpoint(name, url, "random (seed 0)")
        repeated(book, name, off)
    book.footer()
    return book
