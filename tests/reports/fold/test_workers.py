"""What each worker did, by its own records: nothing of another's, and None where it told nothing."""

import pytest

from reports.fold.run_records import RunRecords, planned_of
from reports.fold.workers import WorkerShare, worker_shares
from tests.reports.builder import Book
from tests.reports.lines import FIRST_NS, drained_line, health_line, path_line, start_line, window

MS = 1_000_000


def test_each_worker_has_what_it_told_itself() -> None:
    book = Book()
    tag = book.plan("onnx-http", 2, 3)
    ended = {"first_start_ns": FIRST_NS, "last_end_ns": FIRST_NS + 2_000 * MS, "failures": {"reset": 3}}
    warm_up = {"phase": "warm-up"}
    run = RunRecords(planned_of(book.header["plan"][0]))
    for record in (
        start_line(tag, "w2", "w0"),
        window(tag, "w1", [MS] * 60 + [3 * MS] * 60, 2) | ended,
        window(tag, "w1", [90 * MS] * 500, 2) | ended | warm_up,
        window(tag, "w0", [5 * MS] * 20, 2) | ended | {"failures": {}},
        health_line(tag, "w1", lags_ns=[MS] * 97 + [2 * MS] * 3, cpu_pct=40.0),
        health_line(tag, "w1", lags_ns=[9 * MS] * 500, cpu_pct=99.0) | warm_up,
        path_line(tag, "w1", connections=5),
        path_line(tag, "w1", connections=4),
        path_line(tag, "w1", connections=70) | warm_up,
        drained_line(tag, "w1", 7, 123) | warm_up,
        drained_line(tag, "w1", 2, 123) | {"users_ns": 3_000 * MS},
        drained_line(tag, "w3", 9, 0),
        drained_line(tag, "w3", 4, 0),
        {"kind": "drained", **tag, "worker": "w0", "phase": "measure", "error": "timed out"},
    ):
        run.add(record)
    near = {number: pytest.approx(number * MS, rel=1e-3) for number in (1, 2, 3, 5)}
    assert worker_shares(run.settled()) == (
        WorkerShare(worker="w2", requests=0, failures=0, images=0),
        WorkerShare(
            worker="w0", requests=20, failures=0, images=40,
            phase_ns=2_000 * MS, images_per_s=20.0, latency_p50_ns=near[5],
        ),
        WorkerShare(
            worker="w1", requests=123, failures=3, images=240, users=2,
            phase_ns=1_500 * MS, images_per_s=160.0,
            latency_p50_ns=near[1], latency_p95_ns=near[3], cpu_pct=40.0, loop_lag_p99_ns=near[2],
            tcp_connections=5,
        ),
        WorkerShare(worker="w3", requests=0, failures=0, images=0, users=4),
    )  # fmt: skip
