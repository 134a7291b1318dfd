"""Seconds of measure phases: read from ledgers, counted against a bound, and never too many."""

from pathlib import Path

import numpy as np
import pytest

from reports.summary.blocks import MOST_BLOCKS, BlockSeries, RunBlocks, read_blocks
from tests.reports.builder import Book
from tests.reports.gates.book import MS, a_book, add
from tests.reports.lines import FIRST_SECOND, window

CELL = "onnx-http/b1/c1"


def read(folder: Path, book: Book, **more: int) -> dict[int, RunBlocks]:
    return {repeat: run for (_, repeat), run in read_blocks(book.write(folder / "x"), **more).items()}


def test_a_second_of_all_workers_is_one_block_and_warm_up_is_none(tmp_path: Path) -> None:
    book = a_book()
    tag = add(book, "onnx-http", [10, 20, 30], each=10, failed={1: 3})
    book.records.append(window(tag, "w1", [5 * MS] * 4, 1) | {"second": FIRST_SECOND + 1})
    book.records.append(window(tag, "w0", [5 * MS] * 9, 1) | {"phase": "warm-up"})
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
    run.add([window({"cell": CELL, "repeat": 1}, "w0", [120 * MS, 121 * MS], 1)])
    seconds = BlockSeries.of([run])
    whole = seconds.whole("latency")
    assert whole.total == 2
    for bound_ms, beyond in ((119, 2), (120.1, 1), (121.1, 0)):
        assert seconds.beyond("latency", bound_ms * MS)[0].sum() == beyond


@pytest.mark.parametrize("most_of_all", [50_000, 100])
def test_a_long_run_has_several_seconds_in_a_block(tmp_path: Path, most_of_all: int) -> None:
    book = a_book()
    add(book, "onnx-http", [10] * 650, each=1)
    run = read(tmp_path, book, most_of_all=most_of_all)[1]
    sizes = [block.ok for block in run.blocks]
    width = 3 if most_of_all > 650 else 7
    assert sum(sizes) == 650
    assert max(sizes) == width
    assert len(sizes) <= min(MOST_BLOCKS, 650 / width + 2)


def test_what_is_added_bit_by_bit_is_what_is_added_at_once() -> None:
    tag = {"cell": CELL, "repeat": 1}
    windows = [window(tag, f"w{at % 2}", [at * MS], 1) | {"second": at // 2} for at in range(1, 9)]
    whole, bits = RunBlocks(), RunBlocks()
    whole.add(windows)
    for one in windows:
        bits.add([one])
    for found in (whole, bits):
        assert [block.ok for block in found.blocks] == [1, 2, 2, 2, 1]
    one, other = (BlockSeries.of([run]).beyond("latency", 4.5 * MS) for run in (whole, bits))
    assert np.array_equal(one, other)


def test_a_run_without_any_request_is_no_run() -> None:
    run = RunBlocks()
    run.add([window({"cell": CELL, "repeat": 1}, "w0", [MS], 1)])
    assert BlockSeries.of([RunBlocks(), run]).runs.tolist() == [0]
