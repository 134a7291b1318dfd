"""Ratios: of two ways within a study, and to a baseline, in pairs where they were made in turns."""

from collections.abc import Sequence
from math import log
from pathlib import Path

import pytest

from reports.gates.compared import APART, in_turns
from reports.gates.verdict import Verdict
from tests.reports.builder import Book
from tests.reports.gates.book import (
    a_book,
    a_study,
    add,
    at_other_times,
    judged,
    own,
    repeats,
    require,
    source,
)

RATIO = require("onnx-grpc / onnx-http <= 1", of="'latency_p95_ms'")
BASELINE = require("latency_p95_ms / baseline <= 1", endpoint="'onnx-grpc'")
CELL, PAIR = "onnx-grpc/b1/c1", "onnx-grpc/b1/c1 / onnx-http/b1/c1"


def one(folder: Path, thresholds: str, *books: Book, baseline: Book | Sequence[Book] = ()) -> Verdict:
    (verdict,) = own(judged(folder, thresholds, *books, baseline=baseline))
    return verdict


def swaying(grpc: float) -> Book:
    """Repeats that go up and down by a third, both ways alike."""
    book = a_book()
    for repeat, sway in enumerate((1.0, 1.3, 0.8, 1.1, 0.9), 1):
        add(book, "onnx-http", [10 * sway] * 6, repeat=repeat)
        add(book, "onnx-grpc", [10 * grpc * sway * (1.01 if repeat % 2 else 0.99)] * 6, repeat=repeat)
    book.footer()
    return book


@pytest.mark.parametrize(("grpc", "outcome"), [(1.0, "pass"), (1.03, "pass"), (1.15, "fail")])
def test_two_ways_are_compared_repeat_by_repeat(tmp_path: Path, grpc: float, outcome: str) -> None:
    found = one(tmp_path, RATIO, swaying(grpc))
    assert (found.cell, found.outcome, found.runs, found.note) == (PAIR, outcome, 5, "")
    assert found.value == pytest.approx(grpc, rel=0.005)
    assert found.low is not None
    assert found.high is not None
    assert grpc * 0.98 < found.low < found.high < grpc * 1.02


def test_a_ratio_is_said_in_one_sentence(tmp_path: Path) -> None:
    assert one(tmp_path, RATIO, swaying(1.15)).sentence == (
        f"{PAIR}: ratio of latency_p95_ms 1.15× (95 % CI 1.14× to 1.17×), at most 1.00× is required "
        "(1.05× tolerated)."
    )


def test_repeats_are_paired_by_their_number(tmp_path: Path) -> None:
    book = swaying(1.0)
    book.caveat({"cell": CELL, "repeat": 2}, "client-bound", "one core was full")
    found = one(tmp_path, RATIO, book)
    assert (found.outcome, found.runs, found.note) == ("pass", 4, f"of {CELL}: 1 run left out (client-bound)")


def test_it_is_said_of_which_side_runs_were_left_out(tmp_path: Path) -> None:
    book, then = swaying(1.0), at_other_times()
    for cell, repeat in ((CELL, 1), ("onnx-http/b1/c1", 1), ("onnx-http/b1/c1", 5)):
        book.caveat({"cell": cell, "repeat": repeat}, "client-bound", "one core was full")
    then[0].caveat({"cell": CELL, "repeat": 2}, "worker-lost", "it went away")
    within = one(tmp_path / "a", RATIO, book)
    assert within.note == (
        f"of {CELL}: 1 run left out (client-bound); of onnx-http/b1/c1: 2 runs left out (client-bound)"
    )
    assert one(tmp_path / "b", BASELINE, book, baseline=then).note == (
        f"{APART}; of {CELL}: 1 run left out (client-bound); of the baseline's: 1 run left out (worker-lost)"
    )


def test_no_number_of_repeats_mends_a_side_of_which_no_run_counts(tmp_path: Path) -> None:
    book = a_book()
    repeats(book, "onnx-http", 10.0)
    for tag in repeats(book, "onnx-grpc", 10.0):
        book.caveat(tag, "client-bound", "one core was full")
    book.footer()
    found = one(tmp_path, RATIO.replace("p95", "p99"), book)
    assert (found.runs, found.more_repeats) == (0, None)
    assert found.sentence.endswith(f"no run of {CELL} counts: 5 runs left out (client-bound).")


def test_fewer_than_three_pairs_are_inconclusive(tmp_path: Path) -> None:
    book = swaying(1.0)
    for cell, repeat in ((CELL, 1), (CELL, 2), ("onnx-http/b1/c1", 3)):
        book.caveat({"cell": cell, "repeat": repeat}, "client-bound", "one core was full")
    found = one(tmp_path, RATIO, book)
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 2, 1)
    assert "2 repeats of both count, and a ratio takes 3; 1 more repeat would decide" in found.sentence


def test_a_percentile_of_too_few_results_on_a_side_is_inconclusive(tmp_path: Path) -> None:
    book = a_book()
    repeats(book, "onnx-http", 10.0, count=4)
    repeats(book, "onnx-grpc", 10.0, count=4, seconds=10)
    book.footer()
    found = one(tmp_path, RATIO.replace("p95", "p99"), book)
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 4, 1)
    assert "onnx-http/b1/c1: 4,800 results, and latency_p99_ms takes 5,000" in found.sentence


def test_a_value_of_zero_has_no_ratio(tmp_path: Path) -> None:
    found = one(tmp_path, RATIO.replace("latency_p95_ms", "abandoned"), swaying(1.0))
    assert found.outcome == "inconclusive"
    assert f"no run of {CELL} counts: 5 runs left out (abandoned is 0)" in found.sentence


def test_a_baseline_without_the_cell_or_of_another_image_size_never_passes(tmp_path: Path) -> None:
    other, smaller = a_book(), a_study()
    repeats(other, "onnx-http", 10.0)
    other.footer()
    missing = one(tmp_path / "a", BASELINE, a_study(), baseline=other)
    assert (missing.outcome, missing.sentence) == ("inconclusive", f"{CELL}: the baseline has no such cell.")
    for repeat in range(1, 6):
        smaller.request_bytes({"cell": CELL, "repeat": repeat}, 150_528)
    size = one(tmp_path / "b", BASELINE, a_study(), baseline=smaller)
    assert size.outcome == "inconclusive"
    assert size.sentence == (
        f"{CELL}: the conditions are not the baseline's: request_bytes (602,112 here, 150,528 in the "
        "baseline); may_differ of [baseline] can allow that."
    )
    allowed = f"{BASELINE}[baseline]\nmay_differ = ['request_*']\n"
    others = [smaller, *at_other_times()[1:]]
    assert one(tmp_path / "c", allowed, a_study(), baseline=others).outcome == "pass"


def test_bounds_on_evidence_hold_for_the_baseline_too(tmp_path: Path) -> None:
    then = a_book()
    repeats(then, "onnx-grpc", 10.0, seconds=4)
    then.footer()
    evidence = require("requests >= 1000", level="1", workers="0")
    verdicts = own(judged(tmp_path, BASELINE + evidence, a_study(), baseline=then))
    found = next(verdict for verdict in verdicts if verdict.ratio)
    assert found.outcome == "inconclusive"
    assert "no run of the baseline's counts: 5 runs left out (requests >= 1000 is not kept)" in found.sentence


def studies(started: str, folder: Path, minutes: list[int], *ms: float) -> list[Book]:
    return [
        a_study(one, started_utc=f"2026-11-21T{started}:{minute:02}:00.000Z")
        for minute, one in zip(minutes, ms, strict=True)
    ]


def test_studies_made_in_turns_are_paired_turn_by_turn(tmp_path: Path) -> None:
    drift = (10.0, 12.0, 15.0)
    now = studies("11", tmp_path, [1, 10, 21], *(ms * 1.15 for ms in drift))
    then = studies("11", tmp_path, [0, 11, 20], *drift)
    sides = source(tmp_path / "now", *now), source(tmp_path / "then", *then)
    assert in_turns(*sides) == [(0, 0), (1, 1), (2, 2)]
    assert in_turns(*reversed(sides)) == [(0, 0), (1, 1), (2, 2)]
    apart = source(tmp_path / "later", *studies("12", tmp_path, [1, 10, 21], *drift))
    assert in_turns(sides[0], apart) == []
    two = source(tmp_path / "two", *now[:2])
    assert in_turns(two, source(tmp_path / "other two", *then[:2])) == []


def test_the_ratio_of_turns_leaves_out_what_drifts(tmp_path: Path) -> None:
    from reports.gates.baseline import load_baseline
    from reports.gates.judge import judge
    from reports.gates.thresholds import parse_gates

    drift = (10.0, 12.0, 15.0)
    now = source(tmp_path, *studies("11", tmp_path, [1, 10, 21], *(ms * 1.15 for ms in drift)))
    then = [
        str(book.write(tmp_path / f"then{at}"))
        for at, book in enumerate(studies("11", tmp_path, [0, 11, 20], *drift))
    ]
    (found,) = own(judge(parse_gates(BASELINE, "x"), now, load_baseline(then)))
    assert (found.outcome, found.runs, found.note) == ("fail", 3, "")
    assert found.low is not None
    assert log(found.low) == pytest.approx(log(1.15), abs=0.003)
