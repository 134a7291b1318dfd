"""Requests that failed or were never sent: they are beyond every bound on a latency."""

from math import inf
from pathlib import Path

import numpy as np
import pytest

from reports.gates.absolute import percentile_ns
from reports.gates.verdict import kept_text, measured_said
from reports.histogram.buckets import EMPTY, Buckets, indices_of
from reports.summary.blocks import BlockSeries, RunBlocks
from tests.reports.gates.book import MS, a_book, judged, own, require, source
from tests.reports.gates.rows import HTTP, Run, one, steady

OPEN = "onnx-http/b1/r50"


def failing(each_s: int, seconds: int = 30) -> list[Run]:
    """Three runs of 200 successes a second, of 8 to 12 ms, and so many timeouts."""
    return steady(seconds, failed=dict.fromkeys(range(seconds), each_s))


def test_timeouts_above_what_a_percentile_leaves_break_every_bound() -> None:
    found = one("latency_p95_ms <= 120", failing(20))
    assert (found.outcome, found.value, found.low, found.high) == ("fail", None, None, None)
    assert found.sentence == (
        f"{HTTP}: latency_p95_ms above any limit (95 % CI above any limit to above any limit), "
        "at most 120 ms is required."
    )
    assert measured_said(found) == "–"
    assert '"value": null' in kept_text([found])


def test_without_a_reply_nothing_shows_that_a_percentile_is_at_least_a_bound() -> None:
    runs = steady(30, each=0, failed=dict.fromkeys(range(30), 50))
    found = one("latency_p50_ms >= 40", runs)
    assert (found.outcome, found.more_repeats, found.runs) == ("inconclusive", None, 3)
    assert found.sentence == f"{HTTP}: no result: latency_p50_ms lies among requests without a reply."
    assert one("latency_p50_ms <= 40", runs).outcome == "fail"


def test_timeouts_move_a_percentile_up() -> None:
    # 4 % have no reply, so that p95 of all is p98.9 of the successes and p50 is p52
    found = one("latency_p50_ms <= 120", failing(8))
    assert (found.outcome, found.value) == ("pass", pytest.approx(10.0, rel=1e-3))
    high = one("latency_p95_ms <= 120", failing(8))
    assert (high.outcome, high.value) == ("inconclusive", pytest.approx(12.0, rel=1e-3))
    assert one("latency_p95_ms <= 120", failing(0)).outcome == "pass"


def test_late_and_failed_requests_are_added_up() -> None:
    # 20 % take 12 ms, 9 % fail: each alone is less than a quarter
    assert one("latency_p90_ms <= 11.5", failing(20)).outcome == "fail"
    both = one("latency_p50_ms <= 9.5", failing(20))
    assert (both.outcome, both.value) == ("fail", pytest.approx(10.0, rel=1e-3))


def test_a_run_in_which_nothing_succeeded_counts() -> None:
    nothing = steady(30, each=0, failed=dict.fromkeys(range(30), 50))[2]
    found = one("latency_p50_ms <= 120", [*steady(30, runs=2), nothing])
    assert (found.runs, found.note) == (3, "")


@pytest.mark.parametrize(("dropped", "outcome"), [(0, "pass"), (400, "fail")])
def test_arrivals_that_were_never_sent_are_late(tmp_path: Path, dropped: int, outcome: str) -> None:
    book = a_book()
    for repeat in range(1, 9):
        tag = book.add_open("onnx-http", 50, {"w0": [10 * MS] * 300}, repeat=repeat, dropped=dropped)
        (drained,) = (record for record in book.of(tag) if record["kind"] == "drained")
        drained["dropped_by_s"] = [[0, dropped // 2], [1, dropped // 2]]
    book.footer()
    text = require("latency_p50_ms <= 20") + require("latency_mean_ms <= 20")
    percentile, mean = own(judged(tmp_path, text, book))
    assert (percentile.outcome, percentile.runs, percentile.note) == (outcome, 8, "")
    left_out = (
        "no run of it counts: 8 runs left out (dropped-arrivals)" if dropped else "latency_mean_ms 10.0 ms"
    )
    assert left_out in mean.sentence


def test_dropped_arrivals_are_of_the_second_in_which_they_were_due(tmp_path: Path) -> None:
    book = a_book()
    tag = book.add_open("onnx-http", 50, {"w0": [10 * MS] * 300}, dropped=7)
    (drained,) = (record for record in book.of(tag) if record["kind"] == "drained")
    drained["dropped_by_s"] = [[1, 3], [5, 4]]
    book.footer()
    found = source(tmp_path, book)
    assert found.blocks_of is not None
    seconds = BlockSeries.of(found.blocks_of(found.runs[OPEN]))
    assert seconds.unanswered().tolist() == [0, 3, 4]
    assert [hits.tolist() for hits in seconds.beyond("latency", 20 * MS)] == [[0, 0, 0], [150, 150, 0]]


def test_a_run_tells_of_seconds_in_which_all_was_dropped() -> None:
    run = RunBlocks()
    run.drop(4, 2)
    run.drop(4, 1)
    assert (len(run.blocks), run.dropped) == (1, [3])


def test_a_percentile_of_all_requests() -> None:
    values = Buckets(indices_of(np.array([10_000, 20_000])), np.array([50, 50]))
    assert percentile_ns(values, 0, 50) == pytest.approx(10 * MS, rel=1e-3)
    assert percentile_ns(values, 25, 50) == pytest.approx(20 * MS, rel=1e-3)
    assert percentile_ns(values, 25, 80) == pytest.approx(20 * MS, rel=1e-3)
    assert percentile_ns(values, 25, 81) == inf
    assert percentile_ns(EMPTY, 25, 1) == inf
