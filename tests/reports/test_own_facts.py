"""Facts of backends and endpoints in a header: an endpoint's own come first, and no name says any."""

from pathlib import Path
from typing import Any

import pytest

from reports.backend_facts import FLOOR, NOT_COMPUTED, facts_of
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.strangers import a_book, run, stranger

STAND_IN = "Mine: a stand-in for another."
HEADER: dict[str, Any] = {
    "backends": {
        "mine": {"computes": True, "stands_for": "theirs", "stand_in": STAND_IN},
        "null": {"computes": False, "floor": True},
    },
    "endpoints": {
        "plain": {},
        "other": {"stands_for": "trt"},
        "idle": {"computes": False},
        "idle-other": {"computes": False, "stands_for": "trt"},
        "plain-floor": {"floor_of": "plain", "stands_for": "trt"},
    },
}


@pytest.mark.parametrize(
    ("endpoint", "stands_for", "computes", "said"),
    [
        ("plain", "theirs", True, STAND_IN),
        ("unknown", "theirs", True, STAND_IN),
        ("other", "trt", True, "Stands in for trt."),
        ("idle", "theirs", False, f"{STAND_IN} {NOT_COMPUTED}"),
        ("idle-other", "trt", False, f"Stands in for trt. {NOT_COMPUTED}"),
    ],
)
def test_an_endpoints_own_come_first(endpoint: str, stands_for: str, said: str, *, computes: bool) -> None:
    facts = facts_of(HEADER, "mine", endpoint)
    assert (facts.stands_for, facts.computes, facts.stand_in) == (stands_for, computes, said)


def test_a_floor_is_one_whatever_its_endpoint_stands_for() -> None:
    facts = facts_of(HEADER, "null", "plain-floor")
    assert (facts.floor, facts.stands_for, facts.stand_in) == (True, "", FLOOR)


def test_a_name_says_nothing(tmp_path: Path) -> None:
    book = a_book()
    for name in ("openvino-http", "emulated-grpc", "sea-floor"):
        run(book, name, stranger(book, name))
    study = load_study(book.write(tmp_path))
    assert [(one.is_floor, one.stand_in, one.facts.computes) for one in study.runs] == [(False, "", True)] * 3


def test_a_floor_is_told_by_the_ledger_in_older_ones_too(tmp_path: Path) -> None:
    book = Book()
    book.endpoint("onnx-http-floor", "127.0.0.1:8010")
    book.add("onnx-http", 1, 1, {"w0": [9_000_000] * 40})
    book.add("onnx-http-floor", 1, 1, {"w0": [9_000_000] * 40})
    study = load_study(book.write(tmp_path))
    assert [one.is_floor for one in study.runs] == [False, True]
    assert study.floors == {"onnx-http": "onnx-http-floor"}
