"""Seconds of measure phases: read from ledgers, counted against a bound, and never too many."""

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reports.fold.windows import Results
from reports.histogram.codec import decoded, encoded_ns
from reports.study.study import coarseness, load_study
from reports.summary.blocks import MOST_BLOCKS, BlockSeries, RunBlocks
from tests.reports.builder import Book
from tests.reports.gates.book import MS, a_book, add
from tests.reports.lines import FIRST_SECOND, Record, window

LATENCY = decoded(encoded_ns([5 * MS])[0])


def read(folder: Path, book: Book) -> dict[int, RunBlocks]:
    return {repeat: run for (_, repeat), run in load_study(book.write(folder / "x")).blocks.items()}


def results(values_ns: list[int]) -> Results:
    return Results(ok=len(values_ns), histograms={"latency": decoded(encoded_ns(values_ns)[0])})


def test_a_second_of_all_workers_is_one_block_and_warm_up_is_none(tmp_path: Path) -> None:
    book = a_book()
    tag = add(book, "onnx-http", [10, 20, 30], each=10, failed={1: 3})
    book.records.append(window(tag, "w1", [5 * MS] * 4, 1) | {"second": FIRST_SECOND + 1})
    for second in (FIRST_SECOND - 1, FIRST_SECOND):
        book.records.append(window(tag, "w0", [5 * MS] * 9, 1) | {"phase": "warm-up", "second": second})
    seconds = BlockSeries.of([read(tmp_path, book)[1]])
    hits, requests = seconds.beyond("latency", 22.5 * MS)
    assert (hits.tolist(), requests.tolist()) == ([0, 2, 10], [10, 14, 10])
    assert [counts.tolist() for counts in seconds.failed()] == [[0, 3, 0], [10, 17, 10]]
    assert seconds.whole("service_time").total == 34
    assert seconds.runs.tolist() == [0, 0, 0]


def test_a_second_without_requests_is_no_block_and_one_of_failures_alone_is(tmp_path: Path) -> None:
    book = a_book()
    tag = add(book, "onnx-http", [10], each=10)
    for second, failures in ((1, {}), (2, {"timeout": 2})):
        book.records.append(
            window(tag, "w0", [], 1) | {"second": FIRST_SECOND + second, "failures": failures}
        )
    seconds = BlockSeries.of([read(tmp_path, book)[1]])
    assert [counts.tolist() for counts in seconds.failed()] == [[0, 2], [10, 2]]
    assert [counts.tolist() for counts in seconds.beyond("latency", 0)] == [[10, 0], [10, 0]]


def test_runs_are_told_apart(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10, 10], repeat=1)
    add(book, "onnx-http", [10], repeat=2)
    runs = read(tmp_path, book)
    assert BlockSeries.of([runs[1], runs[2]]).runs.tolist() == [0, 0, 1]
    assert BlockSeries.of([]).runs.tolist() == []


def test_a_bound_is_met_by_what_lies_in_the_bucket_that_it_is_the_middle_of() -> None:
    run = RunBlocks()
    run.merge(0, results([120 * MS, 121 * MS]))
    seconds = BlockSeries.of([run])
    whole = seconds.whole("latency")
    assert whole.total == 2
    for bound_ms, beyond in ((119, 2), (120.1, 1), (121.1, 0)):
        assert seconds.beyond("latency", bound_ms * MS)[0].sum() == beyond


@pytest.mark.parametrize(("most_of_a_run", "width"), [(3_600, 3), (100, 7)])
def test_a_long_run_has_several_seconds_in_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_of_a_run: int, width: int
) -> None:
    """None is narrower than a second of the timeline, which is of 7 where a run may have 100 of them."""
    from reports.study import study as module

    seconds = partial(coarseness, most_of_a_run=most_of_a_run)
    monkeypatch.setattr(module, "coarseness", seconds)
    book = a_book()
    add(book, "onnx-http", [10] * 650, each=1)
    run = read(tmp_path, book)[1]
    sizes = [block.ok for block in run.blocks]
    assert sum(sizes) == 650
    assert max(sizes) == width
    assert len(sizes) <= min(MOST_BLOCKS, 650 / width + 2)


def test_what_is_merged_bit_by_bit_is_what_is_merged_at_once() -> None:
    whole, bits = RunBlocks(2), RunBlocks(2)
    for second in range(6):
        each = [results([at * MS]) for at in range(second + 1)]
        for one in each:
            bits.merge(second, one)
        together = Results()
        for one in each:
            together.merge(one)
        whole.merge(second, together)
    for found in (whole, bits):
        assert [block.ok for block in found.blocks] == [3, 7, 11]
    one_way, other = (BlockSeries.of([run]).beyond("latency", 2.5 * MS) for run in (whole, bits))
    assert np.array_equal(one_way, other)


def test_arrivals_that_were_never_sent_are_beyond_every_bound() -> None:
    run = RunBlocks()
    run.merge(4, results([MS] * 3))
    run.merge(4, Results(failure_kinds=Counter(timeout=2)))
    for second, count in ((4, 1), (4, 2), (7, 5), (9, 0)):
        run.drop(second, count)
    assert (run.failures, len(run), run.dropped, len(run.blocks)) == (2, 3, [3, 5], 2)
    seconds = BlockSeries.of([run])
    assert (seconds.unanswered().tolist(), seconds.dropped) == ([5, 5], [3, 5])
    assert [counts.tolist() for counts in seconds.failed()] == [[2, 0], [5, 0]]
    assert BlockSeries(seconds.blocks, seconds.runs).unanswered().tolist() == [2, 0]


def test_a_block_keeps_latency_and_service_time_and_grows_by_two() -> None:
    run = RunBlocks(3)
    for second in range(12):
        run.merge(second, Results(ok=second, histograms={"latency": LATENCY, "send_delay": LATENCY}))
    assert [block.ok for block in run.blocks] == [3, 12, 21, 30]
    assert [found.total for found in run.histograms] == [3] * 4
    run.widen()
    assert (run.width_s, [block.ok for block in run.blocks]) == (6, [15, 51])
    assert [found.total for found in run.histograms] == [6, 6]


@pytest.mark.parametrize(("told", "dropped"), [({}, [2, 0]), ({"dropped_by_s": [[1, 2]]}, [0, 2])])
def test_what_older_ledgers_do_not_tell_the_seconds_of_was_dropped_at_once(
    tmp_path: Path, told: Record, dropped: list[int]
) -> None:
    book = Book()
    tag = book.add_open("onnx-http", 20.0, {"w0": [9 * MS] * 40}, dropped=2)
    for record in book.of(tag):
        record |= told if record["kind"] == "drained" else {}
    (run,) = load_study(book.write(tmp_path)).blocks.values()
    assert (run.dropped, [block.ok for block in run.blocks]) == (dropped, [20, 20])


def test_a_run_without_any_request_is_no_run() -> None:
    run = RunBlocks()
    run.merge(0, results([MS]))
    assert BlockSeries.of([RunBlocks(), run]).runs.tolist() == [0]
