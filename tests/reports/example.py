"""The fixed study behind the golden files: made-up numbers in the seeds' shape, with doubts."""

import random

from tests.reports.builder import Book
from tests.reports.lines import triton

MS = 1_000_000
BATCHES = (1, 4, 8)
# endpoint: address, weights, p50 at batch 1 in ms, ms for each further image
WAYS = {
    "pytorch-http": ("127.0.0.1:8002", "random (seed 0)", 12.0, 9.0),
    "onnx-http": ("127.0.0.1:8010", "random (seed 0)", 20.0, 14.0),
    "onnx-grpc": ("127.0.0.1:8011", "random (seed 0)", 21.0, 10.0),
    "openvino-http": ("127.0.0.1:8020", "random (seed 0)", 17.0, 11.0),
    "openvino-grpc": ("127.0.0.1:8021", "random (seed 0)", 18.0, 7.5),
}


def lognormal(seed: int, median_ms: float, count: int, sigma: float = 0.12) -> list[int]:
    """Durations in ns, the same on every machine."""
    generator = random.Random(seed)
    return [round(median_ms * MS * generator.lognormvariate(0, sigma)) for _ in range(count)]


def example() -> Book:
    """Serial runs in two repeats, eight users once; one run failed, one never began, one lost a worker."""
    book = Book()
    for name, (url, weights, base_ms, image_ms) in WAYS.items():
        book.endpoint(name, url, weights)
        for batch in BATCHES:
            serial(book, name, batch, base_ms + image_ms * (batch - 1))
    for name, (_, _, base_ms, _) in list(WAYS.items())[:-1]:
        concurrent(book, name, base_ms)
    book.plan("openvino-grpc", 1, 8)
    book.footer("interrupted", "stopped after 34 of 35 runs")
    return book


def serial(book: Book, name: str, batch: int, median_ms: float) -> None:
    """Two repeats of 40 requests, save for the one cell that failed."""
    for repeat in (1, 2):
        if (name, batch) == ("openvino-http", 8):
            book.add(
                name, batch, 1, {}, repeat=repeat, status="failed", note="the server ended: exit code -6"
            )
            continue
        values = lognormal(1_000 * batch + repeat, median_ms, 40)
        compute_ns = round(median_ms * 0.8 * MS)
        book.add(name, batch, 1, {"w0": values}, repeat=repeat, counters=triton(40, batch, compute_ns))


def concurrent(book: Book, name: str, base_ms: float) -> None:
    """Eight users on two workers."""
    loads = {worker: lognormal(seed, 4 * base_ms, 600) for seed, worker in enumerate(("w0", "w1"))}
    if name == "onnx-grpc":
        tag = book.add(name, 1, 8, loads, failures={"timeout": 2, "connection": 1})
        book.caveat(tag, "worker-lost", "w1 stopped answering after 3 s")
    else:
        book.add(name, 1, 8, loads, counters=triton(1_200, 1, round(base_ms * 0.8 * MS)))
