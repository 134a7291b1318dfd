"""Thresholds that stopped a study: a fail, unless the run itself says nothing of the server."""

from pathlib import Path

import pytest

from reports.gates.verdict import exit_code
from tests.reports.builder import Book
from tests.reports.gates.book import a_book, a_study, add, judged, outcomes, require

HTTP, GRPC = "onnx-http/b1/c1", "onnx-grpc/b1/c1"
KEPT = require("latency_p95_ms <= 120")


def stopped(*codes: str, day: int = 21, at: int = 1, **gate: object) -> Book:
    book = a_book(started_utc=f"2026-11-{day}T11:00:00.000Z")
    tag = add(book, "onnx-http", [500.0] * 6, repeat=at, status="aborted")
    for code in codes:
        book.caveat(tag, code, "as it happened")
    told = {"threshold": 1, "require": "latency_p95_ms <= 120", "cell": HTTP, "repeat": at}
    book.footer("failed", "stopped by a threshold")
    book.records[-1]["gate"] = told | {"why": "p95 was 600 ms."} | gate
    return book


def test_the_threshold_that_stopped_a_study_fails(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, KEPT, stopped())
    assert outcomes(verdicts) == {HTTP: "fail"}
    assert (verdicts[0].sentence, exit_code(verdicts)) == (f"{HTTP}: p95 was 600 ms.", 1)
    assert verdicts[0].runs == 1
    assert verdicts[1].outcome == "inconclusive"


@pytest.mark.parametrize("gate", [{"threshold": 2}, {"require": "latency_p95_ms <= 100"}])
def test_thresholds_that_were_changed_since_did_not_stop_it(tmp_path: Path, gate: dict[str, object]) -> None:
    assert outcomes(judged(tmp_path, KEPT, stopped(**gate))) == {HTTP: "inconclusive"}


def test_a_threshold_of_other_cells_did_not_stop_it(tmp_path: Path) -> None:
    elsewhere = require("latency_p95_ms <= 120", batch="8")
    assert outcomes(judged(tmp_path, elsewhere, stopped())) == {"no cell": "inconclusive"}


def test_a_run_that_was_spoilt_by_more_than_the_stop_fails_nothing(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, KEPT, stopped("worker-lost", "client-bound", "unsteady"))
    assert (verdicts[0].outcome, exit_code(verdicts)) == ("inconclusive", 3)
    assert verdicts[0].sentence == (
        f"{HTTP}: p95 was 600 ms, and that run does not count (worker-lost, client-bound)."
    )


@pytest.mark.parametrize("code", ["failures", "no-data", "cut-short", "unfinished"])
def test_what_stopping_brings_with_it_spoils_nothing(tmp_path: Path, code: str) -> None:
    assert outcomes(judged(tmp_path, KEPT, stopped(code))) == {HTTP: "fail"}


def test_only_the_run_that_was_stopped_is_looked_at(tmp_path: Path) -> None:
    before = stopped(at=2)
    add(before, "onnx-http", [10.0] * 6)
    before.caveat({"cell": HTTP, "repeat": 1}, "client-bound", "one core was full")
    assert outcomes(judged(tmp_path / "c", KEPT, before)) == {HTTP: "fail"}
    whole = a_study(started_utc="2026-11-20T11:00:00.000Z")
    whole.caveat({"cell": HTTP, "repeat": 1}, "client-bound", "one core was full")
    for folder, books in (("a", (whole, stopped())), ("b", (stopped(), whole))):
        assert outcomes(judged(tmp_path / folder, KEPT, *books))[HTTP] == "fail"


def test_of_two_stops_the_one_that_shows_something_counts(tmp_path: Path) -> None:
    sound, spoilt = stopped(), stopped("worker-lost", day=22, at=2)
    for folder, books in (("a", (sound, spoilt)), ("b", (spoilt, sound))):
        assert outcomes(judged(tmp_path / folder, KEPT, *books)) == {HTTP: "fail"}


def test_the_other_cells_of_the_threshold_are_judged_as_ever(tmp_path: Path) -> None:
    slow = a_study(200.0, started_utc="2026-11-20T11:00:00.000Z")
    assert outcomes(judged(tmp_path, KEPT, slow, stopped("worker-lost"))) == {
        HTTP: "inconclusive",
        GRPC: "fail",
    }
