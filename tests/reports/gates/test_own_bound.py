"""The bound on failures that every study has without declaring it."""

from pathlib import Path

import pytest

from tests.reports.builder import Book
from tests.reports.gates.book import a_study, add, judged, require

HTTP, GRPC = "onnx-http/b1/c1", "onnx-grpc/b1/c1"
KEPT = require("latency_p95_ms <= 120")


def failing(**header: object) -> Book:
    return a_study(change=lambda book: add(book, "onnx-http", [10.0] * 6, batch=8, failed={0: 6}), **header)


def test_every_cell_has_a_bound_on_its_failures(tmp_path: Path) -> None:
    verdicts = [one for one in judged(tmp_path, KEPT, failing()) if not one.threshold]
    assert {one.cell: one.outcome for one in verdicts} == {
        HTTP: "pass",
        GRPC: "pass",
        "onnx-http/b8/c1": "fail",
    }
    assert {one.title for one in verdicts} == {"--max-failure-ratio"}


@pytest.mark.parametrize(("ratio", "outcome"), [(0.004, "fail"), (0.006, "pass")])
def test_the_studys_own_bound_is_of_the_requests_that_were_made(
    tmp_path: Path, ratio: float, outcome: str
) -> None:
    verdicts = judged(tmp_path, KEPT, failing(options={"max_failure_ratio": ratio}))
    (found,) = [one for one in verdicts if not one.threshold and one.cell == "onnx-http/b8/c1"]
    assert (found.outcome, found.value, found.bound) == (outcome, pytest.approx(6 / 1_206), ratio)


def test_a_threshold_on_failures_takes_the_place_of_the_own_bound_and_a_warning_does_not(
    tmp_path: Path,
) -> None:
    fails = require("failure_ratio <= 0.05", batch="8")
    taken = judged(tmp_path / "a", fails, failing())
    assert {one.cell for one in taken if not one.threshold} == {HTTP, GRPC}
    warned = judged(tmp_path / "b", fails + "severity = 'warn'\n", failing())
    assert {one.cell for one in warned if not one.threshold} == {HTTP, GRPC, "onnx-http/b8/c1"}


FLOOR = "onnx-http-floor/b1/c1"
NAMED = require("latency_p95_ms <= 120", endpoint="'*-floor'")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (KEPT, []),
        (NAMED + "severity = 'warn'\n", []),
        (NAMED, ["fail"]),
        (require("onnx-http / onnx-http-floor <= 9", of="'latency_p50_ms'"), ["fail"]),
        (require("trt-http / onnx-http-floor <= 9", of="'latency_p50_ms'"), []),
    ],
)
def test_floors_have_the_bound_on_failures_where_a_threshold_names_them(
    tmp_path: Path, text: str, outcome: list[str]
) -> None:
    def change(book: Book) -> None:
        add(book, "onnx-http-floor", [1.0] * 6, failed={0: 1})
        book.endpoint("trt-http", "127.0.0.1:8012")

    verdicts = judged(tmp_path, text, a_study(change=change))
    assert [one.outcome for one in verdicts if one.cell == FLOOR and not one.threshold] == outcome


def test_a_search_for_a_rate_has_none_since_it_overloads_the_server_on_purpose(tmp_path: Path) -> None:
    searching = failing(options={"find_rate": "p99<=100"})
    assert [one for one in judged(tmp_path / "a", KEPT, searching) if not one.threshold] == []
    both = judged(tmp_path / "b", KEPT, searching, failing(started_utc="2026-11-22T11:00:00.000Z"))
    assert "fail" in {one.outcome for one in both if not one.threshold}
