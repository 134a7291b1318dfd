"""What each worker of a run did, and what sets one apart from the others."""

from pathlib import Path

import pytest

from reports.fold.workers import WorkerShare
from reports.study.study import load_study
from reports.summary.summary import Summary
from reports.topics.runs.workers import hints, per_worker
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, health_line
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
HINT = ": a hint of trouble on the client's side, such as a busy host or a longer way, and no proof"


def share(requests: int, p50_ms: float = 10, users: int | None = 2) -> WorkerShare:
    return WorkerShare(
        worker="w", requests=requests, failures=0, images=requests, users=users, latency_p50_ns=p50_ms * MS
    )


def two_workers(folder: Path) -> Summary:
    """One worker with 200 requests of 20 ms by two users, one with a user of 100 of 40 ms, three failed."""
    book = Book()
    tag = book.add("onnx-http", 2, 3, {"w1": [20 * MS] * 200, "w0": [40 * MS] * 100})
    for record in book.of(tag):
        if record["kind"] == "drained" and record["worker"] == "w1":
            record["users"] = 2
        if record["kind"] == "window" and record["worker"] == "w0" and record["second"] > FIRST_SECOND:
            record["failures"] = {"timeout": 3}
    for second, cpu_pct in ((0, 20.0), (1, 40.0)):
        book.records.append(
            health_line(tag, "w0", FIRST_SECOND + second, lags_ns=[3 * MS] * 50, cpu_pct=cpu_pct)
        )
        book.path(tag, "w0", FIRST_SECOND + second, connections=1 + second)
    return load_study(book.write(folder)).runs[0]


def test_each_worker_is_summed_by_its_own_records(tmp_path: Path) -> None:
    first, second = two_workers(tmp_path).per_worker
    assert (first.worker, first.requests, first.failures, first.images, first.users) == ("w1", 200, 0, 400, 2)
    assert (first.cpu_pct, first.loop_lag_p99_ns, first.tcp_connections) == (None, None, None)
    assert (second.worker, second.requests, second.failures, second.images) == ("w0", 103, 3, 200)
    assert second.phase_ns == 4_000 * MS
    assert second.images_per_s == 50
    assert second.latency_p50_ns == pytest.approx(40 * MS, rel=1e-3)
    assert second.latency_p99_ns is None
    assert (second.cpu_pct, second.tcp_connections) == (30, 2)
    assert second.loop_lag_p99_ns == pytest.approx(3 * MS, rel=1e-3)


def test_windows_of_many_seconds_give_the_same(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [20 * MS] * 200})
    for record in book.measured(tag):
        record["second"] = FIRST_SECOND
    (merged,) = load_study(book.write(tmp_path)).runs[0].per_worker
    assert (merged.requests, merged.phase_ns, merged.images_per_s) == (200, 4_000 * MS, 50)


def test_a_worker_that_did_nothing_is_listed_and_a_run_that_was_not_begun_has_none(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10, "w1": []})
    book.plan("onnx-grpc", 1, 1)
    done, planned = load_study(book.write(tmp_path)).runs
    idle = done.per_worker[1]
    assert (idle.worker, idle.requests, idle.images_per_s, idle.latency_p50_ns) == ("w1", 0, None, None)
    assert planned.per_worker == ()


def test_the_table_has_a_row_for_each_worker(tmp_path: Path) -> None:
    two_workers(tmp_path)
    table = per_worker(load_study(tmp_path))
    assert [" ".join(row) for row in texts(table)] == [
        "onnx-http/b2/c3 w1 2 200 0 100 20.0 20.0 – – – – 4.00",
        "onnx-http/b2/c3 w0 1 103 3 50.0 40.0 40.0 – 30.0 3.0 2 4.00",
    ]
    assert notes_at(table, 0, 1) == [f"p50 50.0 % below the others' median{HINT}"]
    assert notes_at(table, 1, 1) == [f"p50 100 % above the others' median{HINT}"]
    assert not table.folded
    assert "more than 25 % off the others' median" in table.caption


def test_many_rows_are_folded(tmp_path: Path) -> None:
    book = Book()
    for repeat in range(1, 12):
        book.add("onnx-http", 1, 4, {f"w{at}": [MS] * 10 for at in range(4)}, repeat=repeat)
    table = per_worker(load_study(book.write(tmp_path)))
    assert (len(table.rows), table.folded) == (44, True)
    assert per_worker(load_study(Book().write(tmp_path / "none"))).rows == ()


@pytest.mark.parametrize(
    ("one", "others", "said"),
    [
        (share(200), [share(200), share(210)], []),
        (share(125), [share(100), share(100)], []),
        (share(126), [share(100), share(100)], ["requests a user 26.0 % above the others' median"]),
        (share(300, users=3), [share(200), share(200)], []),
        (share(300, users=None), [share(200), share(200)], ["requests 50.0 % above the others' median"]),
        (share(200, p50_ms=14), [share(200)], ["p50 40.0 % above the others' median"]),
        (share(90, p50_ms=14), [share(99)], []),
        (share(0), [share(200)], ["no request, while others made some"]),
        (share(0, users=0), [share(200)], []),
        (share(0), [share(0)], []),
        (share(200), [share(0), share(200)], []),
        (share(2_000), [share(20, p50_ms=2_000), share(2_000)], []),
    ],
)
def test_what_sets_one_apart_is_a_hint(one: WorkerShare, others: list[WorkerShare], said: list[str]) -> None:
    assert list(hints("closed", one, others)) == [f"{text}{HINT}" for text in said]


def test_a_slow_worker_of_few_requests_is_told_from_those_of_many() -> None:
    assert list(hints("closed", share(20, p50_ms=2_000), [share(2_000), share(2_000)])) == [
        f"requests a user 99.0 % below the others' median{HINT}",
        f"p50 19,900 % above the others' median{HINT}",
    ]


def test_in_open_load_requests_are_compared_whoever_sent_them() -> None:
    said = list(hints("open", share(300, users=3), [share(200)]))
    assert said == [f"requests 50.0 % above the others' median{HINT}"]
