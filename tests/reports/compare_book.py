"""Two made-up studies to set beside each other: what changes from one to the other is chosen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.cells_csv.sides import load_sides
from reports.compare.mapping import mapped, rules_of
from reports.compare.page import compare_page
from reports.page.page import Page
from tests.reports.builder import Book

MS = 1_000_000
JITTER = (1.0, 0.98, 1.02)
REPEATS = len(JITTER)
EVIL = "<script>alert(1)</script>|`x`\n# h\x1b[31m[red]"


def serial(book: Book, endpoint: str, batch: int, ms: float, repeats: int = REPEATS, **more: Any) -> None:
    """Repeats of 40 requests by one user, each repeat a little off the latency."""
    for repeat in range(1, repeats + 1):
        values = [round(ms * MS * JITTER[repeat - 1])] * 40
        book.add(endpoint, batch, 1, {"w0": values}, repeat=repeat, **more)


def before() -> Book:
    """Three ways, three repeats; HTTP and gRPC of one backend at 20 and 22 ms."""
    book = Book(options={"seconds": 10, "link": "none", "results_dir": "results"})
    for name, url in (("onnx-http", "127.0.0.1:8010"), ("onnx-grpc", "127.0.0.1:8011")):
        book.endpoint(name, url, "random (seed 0)")
    for way, one_ms, eight_ms in (("onnx-http", 20, 100), ("onnx-grpc", 22, 90), ("pytorch-http", 12, 60)):
        serial(book, way, 1, one_ms)
        serial(book, way, 8, eight_ms)
    book.footer()
    return book


def after() -> Book:
    """HTTP twice as fast, gRPC slower, batch 8 alike; one cell failed, one ran once, one is new.

    It ran on another CPU, with other images and weights.
    """
    book = Book(
        started_utc="2026-11-22T11:00:00.123Z",
        options={"seconds": 20, "link": "none", "results_dir": "elsewhere"},
        fingerprint={"cpu": "Other CPU", "cores": 2, "git_commit": "0123abc"},
        images={"count": 64, "source": "photographs", "jpeg_bytes_mean": 9800, "sha256": "cd34"},
    )
    for name, url in (("onnx-http", "127.0.0.1:8010"), ("onnx-grpc", "127.0.0.1:8011")):
        book.endpoint(name, url, "laion2b")
    serial(book, "onnx-http", 1, 10)
    serial(book, "onnx-http", 8, 100.5)
    serial(book, "onnx-grpc", 1, 44)
    serial(book, "onnx-grpc", 8, 45, failures={"timeout": 10})
    serial(book, "pytorch-http", 1, 6, repeats=1)
    serial(book, "trt-http", 1, 5)
    book.footer("interrupted", "Ctrl-C")
    return book


def evil(**header: Any) -> Book:
    """Text from outside that tries to be markup, wherever there is any."""
    book = Book(title=EVIL, options={"command": EVIL, EVIL: EVIL}, **header)
    book.endpoint("onnx-http", EVIL, weights=EVIL, model=EVIL)
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, failures={EVIL: 1}, status="failed", note=EVIL)
    book.caveat(tag, EVIL, EVIL)
    book.footer("failed", EVIL)
    return book


def written(folder: Path) -> tuple[str, str]:
    """Both, in directories below one."""
    return str(before().write(folder / "before")), str(after().write(folder / "after"))


def page_of(*places: str, maps: Sequence[str] = ()) -> Page:
    """Of their comparison, with endpoints mapped as `--map` says."""
    return compare_page(
        mapped(load_sides(places), rules_of(maps)), lambda place: f"results/{Path(place).name}"
    )
