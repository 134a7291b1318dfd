"""Bounds on a column itself: what passes, what fails, what cannot be told, and in which words."""

from pathlib import Path
from typing import Any

import pytest

from reports.gates.absolute import of_seconds
from reports.gates.thresholds import parse_gates
from reports.gates.verdict import Verdict
from reports.stats.shares import LEVEL
from reports.summary.blocks import BlockSeries
from tests.reports.builder import Book
from tests.reports.gates.book import MS, a_book, add, judged, own, repeats, require, source

CELL = "onnx-http/b1/c1"


def one(folder: Path, text: str, book: Book, **fields: str) -> Verdict:
    book.footer()
    (verdict,) = own(judged(folder, require(text, **fields), book))
    return verdict


def steady(seconds: int = 30, runs: int = 3, **more: Any) -> Book:
    """Runs of so many seconds, whose requests take 8, 9, 10, 11 and 12 ms in turn."""
    book = a_book()
    for repeat in range(1, runs + 1):
        add(book, "onnx-http", [10.0] * seconds, repeat=repeat, **more)
    return book


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("latency_p99_ms <= 12.1", "pass"),
        ("latency_p99_ms <= 11.5", "fail"),
        ("service_p95_ms <= 12.1", "pass"),
        ("latency_p90_ms >= 11.5", "pass"),
        ("latency_p90_ms >= 12.1", "fail"),
    ],
)
def test_percentiles_pass_or_fail_by_the_requests_beyond_the_bound(
    tmp_path: Path, text: str, outcome: str
) -> None:
    found = one(tmp_path, text, steady(123, each=20))
    assert (found.outcome, found.value, found.runs) == (outcome, pytest.approx(12.0, rel=1e-3), 3)
    assert found.more_repeats is None


def test_a_single_run_shows_nothing(tmp_path: Path) -> None:
    for number, text in enumerate(("latency_p99_ms <= 1", "latency_p50_ms <= 120", "failure_ratio <= 0.5")):
        found = one(tmp_path / str(number), text, steady(400, runs=1, each=15))
        column = text.partition(" ")[0]
        assert (found.outcome, found.more_repeats) == ("inconclusive", 2)
        assert found.sentence == (
            f"{CELL}: 1 run cannot tell how {column} varies; 2 more repeats would decide, if like these."
        )


def test_a_bad_second_in_a_hundred_is_not_ruled_out_by_fewer_seconds(tmp_path: Path) -> None:
    found = one(tmp_path / "a", "latency_p99_ms <= 120", steady(30))
    assert (found.outcome, found.value, found.more_repeats) == (
        "inconclusive",
        pytest.approx(12, rel=1e-3),
        10,
    )
    assert found.sentence.endswith(
        "at most 120 ms is required; 90 s cannot show that at most 1 % are late or failed; at least 368 s "
        "can; 10 more repeats would decide, if like these."
    )
    assert one(tmp_path / "b", "latency_p95_ms <= 120", steady(24)).outcome == "pass"
    assert one(tmp_path / "c", "latency_p95_ms <= 120", steady(23)).outcome == "inconclusive"


@pytest.mark.parametrize("failed", [{}, {0: 1}, {0: 1, 1: 1}], ids=["none", "3", "6"])
def test_a_lower_bound_fails_only_with_seconds_enough_to_rule_slow_ones_out(
    tmp_path: Path, failed: dict[int, int]
) -> None:
    # requests without a reply are beyond any bound: of 12,000 they are too few for p99 to lie there
    short = one(tmp_path / "a", "latency_p99_ms >= 500", steady(20, failed=failed))
    assert (short.outcome, short.value) == ("inconclusive", pytest.approx(12.0, rel=1e-3))
    assert short.more_repeats is not None
    assert one(tmp_path / "b", "latency_p99_ms >= 500", steady(160, failed=failed, each=20)).outcome == "fail"


def test_the_interval_of_a_percentile_is_woodruffs(tmp_path: Path) -> None:
    found = one(tmp_path, "latency_p50_ms <= 120", steady(9, each=4))
    assert (found.low, found.high) == (pytest.approx(9.0, rel=1e-3), pytest.approx(10.0, rel=1e-3))
    assert found.sentence == (
        f"{CELL}: latency_p50_ms 9.00 ms (95 % CI 9.00 ms to 10.0 ms), at most 120 ms is required."
    )


def test_what_is_tolerated_beyond_an_absolute_bound_is_no_fail(tmp_path: Path) -> None:
    strict = one(tmp_path / "a", "latency_p95_ms <= 11.5", steady())
    lenient = one(tmp_path / "b", "latency_p95_ms <= 11.5", steady(), least_effect="0.1")
    assert (strict.outcome, lenient.outcome) == ("fail", "pass")
    assert lenient.tolerated == pytest.approx(12.65)
    assert lenient.sentence.endswith("at most 11.5 ms is required (12.7 ms tolerated).")


def test_too_few_results_or_seconds_are_inconclusive(tmp_path: Path) -> None:
    few = one(tmp_path / "a", "latency_p99_ms <= 120", steady(7))
    assert (few.outcome, few.more_repeats) == ("inconclusive", 1)
    assert few.sentence == (
        f"{CELL}: 4,200 results, and latency_p99_ms takes 5,000; 1 more repeat would decide, if like these."
    )
    short = one(tmp_path / "b", "latency_p99_ms <= 120", steady(1, each=2_000))
    assert (short.outcome, short.more_repeats) == ("inconclusive", 2)
    assert "results came in 3 seconds, and it takes 5" in short.sentence


def test_seconds_that_differ_make_a_bound_inconclusive(tmp_path: Path) -> None:
    def book(slow: float) -> Book:
        made = a_book()
        for repeat in (1, 2, 3):
            add(made, "onnx-http", [slow if at in (3, 4) else 10.0 for at in range(30)], repeat=repeat)
        return made

    # in both as many requests of some are above 15 ms, in one all of two seconds
    found = one(tmp_path, "latency_p95_ms <= 15", book(20.0))
    assert (found.outcome, found.value) == ("inconclusive", pytest.approx(18.0, rel=1e-3))
    assert found.more_repeats is not None
    assert found.more_repeats > 5


def test_near_a_bound_neighbours_are_as_alike_as_they_are_at_the_value(tmp_path: Path) -> None:
    book = a_book()
    for repeat in (1, 2, 3):
        add(book, "onnx-http", [20.0 if at in (3, 15) else 10.0 for at in range(30)], repeat=repeat)
    # the fewer requests beyond 21 ms would say that fewer are enough
    found = one(tmp_path, "latency_p95_ms <= 21", book)
    assert (found.outcome, found.more_repeats) == ("inconclusive", 7)


def test_what_is_tolerated_is_never_shown_to_be_broken_by_more_repeats(tmp_path: Path) -> None:
    book = a_book()
    for repeat in (1, 2, 3):
        add(book, "onnx-http", [10.0] * 30, failed=dict.fromkeys(range(30), 4), repeat=repeat)
    # 1.96 % is more than 1 % for sure, and hardly less than what is tolerated
    found = one(tmp_path, "failure_ratio <= 0.01", book, least_effect="1.0")
    assert found.outcome == "inconclusive"
    assert found.more_repeats is not None
    assert 200 < found.more_repeats < 300


def test_the_share_that_is_unexplained_is_of_the_mean_latency(tmp_path: Path) -> None:
    book = a_book()
    for repeat in (1, 2, 3):
        tag = add(book, "onnx-http", [10.0] * 6, repeat=repeat)
        book.phases(tag, encode=MS, send=MS, wait=6 * MS, receive=MS, decode=0)
        book.server_timing(tag, queue=MS, compute=4 * MS)
    found = one(tmp_path, "unexplained_share <= 0.9", book)
    # 2 ms of 10 are neither in the phases nor with the server
    assert found.value == pytest.approx(0.2, rel=0.01)


def test_failures_above_a_share_are_estimated(tmp_path: Path) -> None:
    def found(name: str, failed: int, bound: str) -> Verdict:
        book = steady(150, failed=dict.fromkeys(range(150), failed))
        return one(tmp_path / name, f"failure_ratio <= {bound}", book)

    kept, broken, near = found("a", 2, "0.02"), found("b", 8, "0.02"), found("c", 4, "0.02")
    assert (kept.outcome, broken.outcome, near.outcome) == ("pass", "fail", "inconclusive")
    assert (kept.value, near.value) == (pytest.approx(2 / 202), pytest.approx(4 / 204))
    assert near.more_repeats is not None
    assert "failure_ratio 1.96 % (95 % CI 1.87" in near.sentence
    assert "at most 2.00 % is required" in near.sentence


def test_where_none_may_fail_failures_are_counted(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10.0], each=30)
    passed = one(tmp_path / "a", "failure_ratio <= 0", book)
    assert (passed.outcome, passed.value) == ("pass", 0.0)
    assert passed.sentence == f"{CELL}: 0 of 30 requests failed, at most 0 % is required."
    broken = a_book()
    add(broken, "onnx-http", [10.0], each=30, failed={0: 1})
    failed = one(tmp_path / "b", "failure_ratio <= 0", broken)
    assert (failed.outcome, failed.value) == ("fail", pytest.approx(1 / 31))
    assert failed.sentence == f"{CELL}: 1 of 31 requests failed, at most 0 % is required."


def test_a_run_without_requests_and_a_cell_that_was_not_begun_never_pass(tmp_path: Path) -> None:
    empty = a_book()
    add(empty, "onnx-http", [10.0] * 6, each=0)
    for number, text in enumerate(
        ("latency_p99_ms <= 120", "failure_ratio <= 0", "images_per_s >= 0", "failures <= 0", "requests >= 0")
    ):
        found = one(tmp_path / str(number), text, empty)
        assert found.outcome == "inconclusive"
        assert "no run of it counts: 1 run left out (no" in found.sentence
    planned = a_book()
    planned.plan("onnx-http", 1, 1)
    found = one(tmp_path / "planned", "latency_p99_ms <= 120", planned)
    assert found.sentence == f"{CELL}: no run of it was begun."
    assert found.outcome == "inconclusive"


def test_runs_left_out_are_told_beside_what_the_others_say(tmp_path: Path) -> None:
    book = a_book()
    tags = repeats(book, "onnx-http", 10.0, seconds=20)
    book.caveat(tags[2], "client-bound", "one core was full")
    found = one(tmp_path, "latency_p95_ms <= 120", book)
    assert (found.outcome, found.runs, found.note) == ("pass", 4, "1 run left out (client-bound)")


def test_seconds_of_a_running_study_are_judged_alike(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10.0] * 6, failed={2: 1})
    found = source(tmp_path, book)
    assert found.blocks_of is not None
    seconds = BlockSeries.of(found.blocks_of(found.runs[CELL]))
    text = require("failure_ratio <= 0") + require("latency_p99_ms <= 11")
    none, latency = (
        of_seconds(threshold, seconds, 1) for threshold in parse_gates(text, "thresholds.toml").thresholds
    )
    assert (none.certain, none.p_broken, none.p_kept) == (True, 0.0, 1.0)
    assert (latency.certain, latency.p_broken <= LEVEL) == (False, True)
