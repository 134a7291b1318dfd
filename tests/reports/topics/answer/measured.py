"""Studies whose rates are chosen, for what the first screen says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reports.limit import Limit
from reports.study.study import Study, load_study
from tests.reports.builder import Book

MS = 1_000_000
ENOUGH = 400
"""Requests of a run: p95 has enough of them, p99 has not."""


def add_way(
    book: Book, name: str, each_ms: Sequence[float], batch: int = 1, users: int = 1, count: int = ENOUGH
) -> None:
    """One cell, each of whose repeats has requests that all took so long."""
    for repeat, latency_ms in enumerate(each_ms, 1):
        book.add(name, batch, users, {"w0": [round(latency_ms * MS)] * count}, repeat=repeat)


def serial(folder: Path, status: str = "complete", **ways: Sequence[float]) -> Study:
    """Single images of one user: `onnx_grpc=(10, 11)` are two repeats with requests of so many ms."""
    book = Book()
    for name, each_ms in ways.items():
        add_way(book, name.replace("_", "-"), each_ms)
    book.footer(status)
    return load_study(book.write(folder))


def invalidated(folder: Path, each_ms: Mapping[str, Sequence[float]], *spoilt: tuple[str, int]) -> Study:
    """The same with a client at its limit in some runs, each named by endpoint and repeat."""
    book = Book()
    for name, latencies in each_ms.items():
        add_way(book, name, latencies)
    for name, repeat in spoilt:
        book.caveat({"cell": f"{name}/b1/c1", "repeat": repeat}, "client-bound", "worker w0 at 98 % CPU")
    book.footer()
    return load_study(book.write(folder))


def over_links(folder: Path, links: Sequence[str], *spoilt: str) -> Study:
    """HTTP is faster over the first link, gRPC over the second; `spoilt` cells have no valid run."""
    book = Book()
    for link, (http_ms, grpc_ms) in zip(links, ((10, 20), (40, 30)), strict=True):
        axes = {"link": link, "variant": link or "none"}
        for name, each_ms in (("onnx-http", http_ms), ("onnx-grpc", grpc_ms)):
            for repeat in (1, 2, 3):
                tag = book.add(name, 1, 1, {"w0": [each_ms * MS] * ENOUGH}, repeat=repeat, axes=axes)
                if tag["cell"] in spoilt:
                    book.caveat(tag, "client-bound", "worker w0 at 98 % CPU")
    book.footer()
    return load_study(book.write(folder))


def with_limits(study: Study, *limits: Limit | None) -> Study:
    """The study with another limit for each run, in their order."""
    pairs = zip(study.runs, limits, strict=True)
    return replace(study, runs=tuple(replace(run, limit=limit) for run, limit in pairs))
