"""A study with every kind of record, and how its records are edited."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.reports.builder import Book
from tests.reports.example import MS, carried, lognormal
from tests.reports.lines import FIRST_SECOND, Record, health_line, phase_line, sample_line, triton

STRANGE: tuple[Any, ...] = (
    *(None, True, "", "x", "0", "\ud800", "2026-13-41", [], [None], [1], {}, {"x": None}, {"x": 1}),
    *(0, -1, 1, 0.5, -0.25, 2**31, 2**53, 2**63, 2**70, 10**30, 10**400, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), -float("inf")),
)


def small() -> Book:
    """Two ways and two repeats of each, with every kind of record that a study writes."""
    book = Book(
        options={"command": "locust -f locustfiles/step7.py", "link_mbit": 1000, "usd_per_hour": 0.85},
        links=[{"name": "lan", "one_way_ms": 1.0, "mbit_per_s": 1000, "measured": {"here": {"rtt_ms": 2.1}}}],
        hosts=[{"name": "here", "kind": "local", "workers": 1, "facts": {"cores": 2, "clock_offset_ns": 9}}],
    )
    for name in ("pytorch-http", "onnx-http", "onnx-grpc"):
        book.endpoint(name, "127.0.0.1:8010")
        book.cold(name, 1, 90 * MS, 9 * MS)
    for repeat in (1, 2):
        told(book, book.add("onnx-grpc", 1, 1, one(repeat), repeat=repeat, counters=triton(40, 1, 7 * MS)))
        told(book, book.add("onnx-http", 1, 1, one(repeat), repeat=repeat, counters=triton(40, 1, 7 * MS)))
    for level in (1, 2, 4):
        book.server_timing(book.add("pytorch-http", 1, level, one(level)), compute=7 * MS)
    book.add("onnx-http", 1, 8, {**one(5), **one(6, "w1")}, axes={"link": "lan", "channels": "per-user"})
    book.add_open("onnx-http", 20.0, one(7), failures={"timeout": 2}, dropped=1)
    book.plan_later()
    book.footer()
    return book


def one(seed: int, worker: str = "w0") -> dict[str, list[int]]:
    return {worker: lognormal(seed, 9.0, 40)}


def told(book: Book, tag: Record) -> None:
    """All that may be said of a run beside its results."""
    book.phases(tag, send=MS, wait=7 * MS)
    book.serving(tag)
    for when in ("before", "after"):
        book.memory(tag, when, "onnx", 600 * MS, anonymous_bytes=500 * MS, gpu_memory_bytes=100 * MS)
    book.trace(tag, 40, queue=[MS] * 40, compute=[6 * MS] * 40)
    book.caveat(tag, "few-samples", "only 40 results")
    book.path(tag, **carried(1, 20, 90_000, "onnx-http"))
    book.records += [phase_line(tag, "measure", "2026-11-21T11:00:00Z")]
    for second in (FIRST_SECOND, FIRST_SECOND + 1):
        gpu = {"util_pct": 50.0, "memory_bytes": 3_300_000_000, "power_w": 70.0, "sm_clock_mhz": 1_410}
        host = {"cpu_pct": 30.0, "tx_bytes": second, "rx_bytes": second}
        book.records.append(health_line(tag, "w0", second, span_ns=1_000 * MS, cpu_wait_ns=MS))
        book.records.append(sample_line(tag, second, gpus=[gpu], host=host, server={"requests": 1_020}))


def edited(**fields: Any) -> Callable[[Record], Record]:
    return lambda record: record | fields


def without(*names: str) -> Callable[[Record], Record]:
    return lambda record: {name: value for name, value in record.items() if name not in names}


def with_each(folder: Path, kind: str, change: Callable[[Record], Record]) -> Path:
    """The small study with the records of a kind changed."""
    book = small()
    if kind == "header":
        book.header = change(book.header)
    book.records = [change(record) if record["kind"] == kind else record for record in book.records]
    return book.write(folder)
