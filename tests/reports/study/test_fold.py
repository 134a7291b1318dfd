from pathlib import Path

import pytest

from reports.fold.windows import RequestCounts
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import RESPONSE_BYTES, triton

MS = 1_000_000


def folded(book: Book, folder: Path) -> Summary:
    return load_study(book.write(folder)).runs[0]


def codes(run: Summary) -> list[str]:
    return [doubt.code for doubt in run.caveats]


def text_of(run: Summary, code: str) -> str:
    return next(doubt.text for doubt in run.caveats if doubt.code == code)


def test_a_serial_run_counts_every_request_of_the_measure_phase(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-grpc", 4, 1, {"w0": [10 * MS] * 1_000}, counters=triton(1_000, 4, 8 * MS))
    run = folded(book, tmp_path)
    counts = run.counts
    assert (counts.requests, counts.failures, counts.abandoned, counts.images) == (1_000, 0, 0, 4_000)
    assert (run.workers, run.hosts, run.status) == (1, 1, "done")
    assert run.counts.measure_ns == 10_000 * MS
    assert (run.counts.requests_per_s, run.counts.images_per_s) == (100.0, 400.0)
    assert [run.latency.p50_ns, run.latency.p99_ns, run.latency.mean_ns] == pytest.approx(
        [10 * MS] * 3, rel=1e-3
    )
    assert run.latency.p999_ns is None
    assert (run.send_delay.p99_ns, run.counts.response_bytes) == (0, 4 * RESPONSE_BYTES)
    assert (run.server.total_ns, run.server.queue_ns, run.server.compute_ns) == (8_100_000, 50_000, 8 * MS)
    assert run.server.executed_batch == 4
    assert text_of(run, "few-samples") == "n=1,000: p99.9 is not shown"
    assert not run.tainted


def test_a_run_without_drained_lines_has_the_same_numbers_and_is_doubted(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 50}, counters=triton(50, 1, MS), drained=False)
    run = folded(book, tmp_path)
    assert run.counts.measure_ns == 500 * MS
    assert run.counts.requests_per_s == 100
    assert text_of(run, "cut-short") == "no end of the measure phase from w0"
    assert run.tainted


def test_rates_count_successes_and_failures_are_named_by_kind(tmp_path: Path) -> None:
    book = Book()
    failures = {"connection": 1, "timeout": 2}
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 100}, failures=failures, counters=triton(103, 1, MS))
    run = folded(book, tmp_path)
    assert (run.counts.requests, run.counts.failures, run.succeeded) == (103, 3, 100)
    assert text_of(run, "failures") == "3 of 103: timeout 2, connection 1"
    assert codes(run) == ["few-samples", "failures"]


def test_nothing_but_failures_has_no_percentiles(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": []}, failures={"refused": 5}, counters=triton(5, 1, MS))
    run = folded(book, tmp_path)
    assert (run.counts.requests, run.succeeded) == (5, 0)
    assert (run.latency.p50_ns, run.latency.max_ns, run.latency.mean_ns) == (None, None, None)
    assert run.counts.requests_per_s == 0.0
    assert (codes(run), run.tainted) == (["no-data", "failures"], True)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (60, "n=60: p90 is doubtful, p95, p99 and p99.9 are not shown"),
        (199, "n=199: p95 is doubtful, p99 and p99.9 are not shown"),
        (999, "n=999: p99 is doubtful, p99.9 is not shown"),
        (1_000, "n=1,000: p99.9 is not shown"),
        (10_000, None),
    ],
)
def test_each_percentile_has_its_own_size_of_sample(tmp_path: Path, count: int, text: str | None) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * count}, counters=triton(count, 1, MS))
    found = [doubt.text for doubt in folded(book, tmp_path).caveats]
    assert found == ([text] if text else [])


def test_results_that_a_worker_finished_and_the_ledger_lacks_are_missed(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    next(record for record in book.records if record["kind"] == "drained")["finished"] = 301
    assert (
        text_of(folded(book, tmp_path), "results-lost") == "workers finished 301 requests, the ledger has 300"
    )


def test_a_run_that_never_began_has_no_numbers(tmp_path: Path) -> None:
    book = Book()
    book.plan("onnx-http", 1, 1)
    run = folded(book, tmp_path)
    assert (run.status, run.counts, run.caveats) == ("not-run", RequestCounts(), ())


@pytest.mark.parametrize(("cut", "status"), [(1, "unfinished"), (0, "done"), (-1, "aborted")])
def test_a_run_without_its_end_is_unfinished(tmp_path: Path, cut: int, status: str) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    again = [book.records[-1] | {"status": "aborted"}]
    book.records = book.records[: len(book.records) - cut] + (again if cut < 0 else [])
    run = folded(book, tmp_path)
    assert run.status == status
    assert ("unfinished" in codes(run)) == (cut == 1)


def test_a_stated_caveat_keeps_its_text_and_gets_advice(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 10_000}, counters=triton(10_000, 1, MS))
    book.caveat(tag, "worker-lost", "w1 went silent")
    book.caveat(tag, "moon-phase", "it was full")
    known, unknown = folded(book, tmp_path).caveats
    assert (known.text, known.advice, known.tainted) == (
        "w1 went silent",
        "Look at the worker's log; run the cell again with all workers.",
        True,
    )
    assert (unknown.advice, unknown.tainted) == ("Look at the logs before trusting the number.", False)


def test_images_are_as_many_as_the_successes_batches_have(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 4, 1, {"w0": [MS] * 300})
    for window in book.measured(tag):
        window["images"] = window["ok"]
    with pytest.raises(LedgerError, match="300 successes of batch 4, and 300 images"):
        folded(book, tmp_path)


def test_a_damaged_record_is_one_sentence(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS]})
    del book.records[2]["ok"]
    with pytest.raises(
        LedgerError, match=r"ledger\.jsonl: a record is not what a ledger holds \(KeyError\('ok'\)\)"
    ):
        folded(book, tmp_path)
