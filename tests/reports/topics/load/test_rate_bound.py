"""Which runs of a search tell whether the server met the bound, and what is said of those that do not."""

from pathlib import Path
from typing import Any

import pytest

from reports.study.study import load_study
from tests.reports.answers import told
from tests.reports.builder import Book
from tests.reports.open_load import at_rate, notes_at, rates, searched, texts

IN_USE, ONCE = "--max-in-flight was reached", "not confirmed: one run met it"


@pytest.mark.parametrize(
    ("spoilt", "why", "said"),
    [
        ({"p99_ms": 30, "failures": {"timeout": 1}}, "requests failed", "20/s did not"),
        ({"p99_ms": 30, "dropped": 1}, IN_USE, f"20/s did not: {IN_USE}"),
        # what was dropped makes the rate low, too
        ({"p99_ms": 30, "dropped": 90, "phase_s": 70}, IN_USE, f"20/s did not: {IN_USE}"),
        ({"p99_ms": 130, "dropped": 1}, "130", "20/s did not"),
    ],
)
def test_a_rate_with_failures_or_drops_has_not_met_it(
    tmp_path: Path, spoilt: dict[str, Any], why: str, said: str
) -> None:
    book = searched()
    at_rate(book, 10, 30)
    at_rate(book, 20, **spoilt)
    at_rate(book, 40, 30, failures={"timeout": 1})
    table = rates(book, tmp_path)
    assert texts(table) == [["onnx-http", "1", "10 (6.6–28)", "–", "10.0", ONCE, "20", why, "3"]]
    assert (
        f"onnx-http at batch 1 {ONCE} at 10/s ({said}; the highest is within 6.6–28/s, 95 %)"
        in told(load_study(tmp_path))[0]
    )


NO_EVIDENCE: list[tuple[dict[str, Any], str, str]] = [
    ({"p99_ms": 130, "status": "failed"}, "", "failed"),
    ({"p99_ms": 130, "status": "aborted"}, "", "aborted"),
    ({"p99_ms": 130, "failures": {"refused": 3}}, "worker-lost", "a worker was lost"),
    ({"p99_ms": 30}, "client-bound", "the client was the limit"),
    ({"p99_ms": 30, "dropped": 4}, "client-bound", "the client was the limit"),
    ({"p99_ms": 30, "phase_s": 99}, "", "the rate was not kept"),
]


def with_doubt(book: Book, rate: float, more: dict[str, Any], code: str) -> None:
    tag = at_rate(book, rate, **more)
    if code:
        book.caveat(tag, code, "so it was")


@pytest.mark.parametrize(("more", "code", "why"), NO_EVIDENCE)
def test_a_run_that_says_nothing_of_the_server_leaves_it_unknown(
    tmp_path: Path, more: dict[str, Any], code: str, why: str
) -> None:
    book = searched()
    at_rate(book, 80, 24)
    with_doubt(book, 83.5, more, code)
    with_doubt(book, 10, more, code)
    row = ["onnx-http", "1", "80", "–", "80.0", ONCE, "not known", f"{why} at 83.5/s", "3"]
    table = rates(book, tmp_path)
    assert (texts(table), notes_at(table, 0, 2)) == ([row], [])
    sentence = f"onnx-http at batch 1 {ONCE} at 80/s (not known above: {why} at 83.5/s)"
    assert sentence in told(load_study(tmp_path))[0]


def test_a_client_at_its_limit_has_missed_the_bound_where_it_exceeds_it(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 10, 30)
    with_doubt(book, 20, {"p99_ms": 130}, "client-bound")
    table = rates(book, tmp_path)
    assert texts(table)[0][6:8] == ["20", "130"]
    assert "invalidated: client-bound" in notes_at(table, 0, 7)


def test_an_unknown_rate_below_the_one_that_missed_is_told(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 80, 24)
    at_rate(book, 90, 24, status="failed")
    at_rate(book, 100, 140)
    at_rate(book, 10, 30, "pytorch-http", status="aborted")
    at_rate(book, 20, 140, "pytorch-http")
    at_rate(book, 10, 30, "trt-http", status="failed")
    table = rates(book, tmp_path)
    assert [row[2:8] for row in texts(table)] == [
        ["80 (44.3 or more)", "–", "80.0", ONCE, "100", "140"],
        ["none met it", "–", "–", "–", "20", "140"],
        ["not known", "–", "–", "–", "not known", "failed at 10/s"],
    ]
    assert [notes_at(table, row, 6) for row in range(3)] == [
        ["not known below: failed at 90/s"],
        ["not known below: aborted at 10/s"],
        [],
    ]
    assert told(load_study(tmp_path))[0].startswith(
        "Highest rate: With p99 ≤ 100 ms: "
        f"onnx-http at batch 1 {ONCE} at 80/s (100/s did not; not known between: failed at 90/s; "
        "the highest is 44.3/s or more, 95 %); "
        "pytorch-http none at batch 1 (20/s did not; not known below: aborted at 10/s); "
        "trt-http not known at batch 1 (failed at 10/s)."
    )


def test_a_rate_without_any_success_is_not_known(tmp_path: Path) -> None:
    book = searched()
    at_rate(book, 10, 30)
    book.add_open("onnx-http", 20, {"w0": []}, failures={"refused": 200}, phase_s=10)
    assert texts(rates(book, tmp_path))[0][6:8] == ["not known", "no request succeeded at 20/s"]
