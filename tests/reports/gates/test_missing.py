"""What the study does not have: of the baseline, of a ratio, or of what a threshold asks for."""

from pathlib import Path

import pytest

from reports.gates.verdict import exit_code
from tests.reports.builder import Book
from tests.reports.gates.book import a_book, a_study, add, judged, outcomes, own, repeats, require

HTTP, GRPC = "onnx-http/b1/c1", "onnx-grpc/b1/c1"
RATIO = require("onnx-grpc / onnx-http <= 2", of="'latency_p95_ms'")
BASELINE = "latency_p95_ms / baseline <= 2"
ELSEWHEN = {"started_utc": "2026-11-20T11:00:00.000Z"}


def http_alone(**header: object) -> Book:
    book = a_book(**header)
    repeats(book, "onnx-http", 10.0)
    book.footer()
    return book


def test_a_cell_that_only_the_baseline_has_passes_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, require(BASELINE), http_alone(), baseline=a_study(**ELSEWHEN))
    (gone,) = [one for one in own(found) if one.cell == GRPC]
    assert (gone.outcome, gone.more_repeats, exit_code(found)) == ("inconclusive", None, 3)
    assert gone.sentence == (
        f"{GRPC}: the baseline has it, and the study has not: run it too, or choose the cells in the "
        "threshold."
    )


@pytest.mark.parametrize(
    ("fields", "gone"),
    [
        ({"endpoint": "'onnx-grpc'"}, True),
        ({"protocol": "'http'"}, False),
        ({"batch": "1", "level": "1", "workers": "0"}, True),
        ({"link": "''"}, True),
    ],
)
def test_only_cells_that_the_threshold_chooses_are_missed(
    tmp_path: Path, fields: dict[str, str], gone: bool
) -> None:
    then = a_study(change=lambda book: add(book, "onnx-http-floor", [1.0] * 6), **ELSEWHEN)
    found = outcomes(judged(tmp_path, require(BASELINE, **fields), http_alone(), baseline=then))
    assert (GRPC in found, "onnx-http-floor/b1/c1" in found) == (gone, False)


def test_what_a_baseline_does_not_tell_is_as_in_cells_of_the_same_variant(tmp_path: Path) -> None:
    def crossed(*endpoints: str, **header: object) -> Book:
        book = a_book(**header)
        for endpoint in endpoints:
            for link in ("lan", "wan"):
                add(book, endpoint, [10.0] * 6, axes={"link": link, "variant": link})
        book.footer()
        return book

    then = crossed("onnx-http", "onnx-grpc", **ELSEWHEN)
    verdicts = judged(tmp_path, require(BASELINE, link="'wan'"), crossed("onnx-http"), baseline=then)
    assert set(outcomes(verdicts)) == {f"{HTTP}/wan", f"{GRPC}/wan"}


def test_a_ratio_of_a_cell_that_has_no_other_passes_nothing(tmp_path: Path) -> None:
    book = a_study(change=lambda book: repeats(book, "onnx-grpc", 10.0, batch=4))
    found = judged(tmp_path, RATIO, book)
    assert [one.outcome for one in own(found)] == ["pass", "inconclusive"]
    assert (own(found)[1].sentence, exit_code(found)) == (
        "onnx-grpc/b4/c1 / onnx-http/b4/c1: the study has onnx-grpc/b4/c1, and not onnx-http/b4/c1: run it "
        "too, or choose the cells in the threshold.",
        3,
    )


def test_the_rates_of_a_search_are_not_missed(tmp_path: Path) -> None:
    def searching(rate: float, **header: object) -> Book:
        book = a_book(options={"find_rate": "p99<=100"}, **header)
        for endpoint, at in (("onnx-http", rate), ("onnx-grpc", rate + 1), ("onnx-grpc", 8)):
            book.add_open(endpoint, at, {"w0": [10_000_000] * 300})
        book.footer()
        return book

    thresholds = RATIO + require(BASELINE, level="[8, 50]")
    found = own(judged(tmp_path, thresholds, searching(50), baseline=searching(60, **ELSEWHEN)))
    assert [one.cell for one in found] == ["no cell", "onnx-http/b1/r50", "onnx-grpc/b1/r8"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": "64"}, "batch 64 (it has 1)."),
        ({"cell": "'onnx-http/b1/c2'"}, f"cell onnx-http/b1/c2 (it has {GRPC}, {HTTP})."),
        ({"batch": "[1, 64]", "level": "9"}, "batch 64 (it has 1) or level 9 (it has 1)."),
        ({"batch": "[64, 32]"}, "batch 32 or 64 (it has 1)."),
        ({"workers": "1"}, "workers 1 (it has 0 for all)."),
        ({"endpoint": "'trt-http'"}, "endpoint trt-http (it has onnx-grpc, onnx-http)."),
    ],
)
def test_a_cell_that_is_missing_is_inconclusive(tmp_path: Path, fields: dict[str, str], said: str) -> None:
    book = a_study()
    book.endpoint("trt-http", "127.0.0.1:8012")
    found = own(judged(tmp_path, require("latency_p50_ms <= 120", **fields), book))
    assert (found[-1].outcome, exit_code(found)) == ("inconclusive", 3)
    assert found[-1].sentence == f"no cell: the study has none of {said}"


def test_of_much_that_the_study_has_only_some_is_said(tmp_path: Path) -> None:
    book = a_book()
    for batch in (16, 8, 4, 2, 1, 32):
        add(book, "onnx-http", [10.0] * 6, batch=batch)
    book.footer()
    (found,) = own(judged(tmp_path, require("latency_p50_ms <= 120", batch="64"), book))
    assert found.sentence == "no cell: the study has none of batch 64 (it has 1, 2, 4, 8, 2 more)."


def test_what_no_cell_has_together_is_inconclusive(tmp_path: Path) -> None:
    book = a_study(change=lambda book: add(book, "onnx-http", [10.0] * 6, batch=8))
    text = require("latency_p50_ms <= 120", batch="8", endpoint="'onnx-grpc'")
    (found,) = own(judged(tmp_path, text, book))
    assert found.outcome == "inconclusive"
    assert found.sentence == "no cell: the study has none of endpoint onnx-grpc, batch 8."


def test_a_number_of_several_that_is_missing_does_not_hide_behind_the_others(tmp_path: Path) -> None:
    found = judged(tmp_path, require("latency_p50_ms <= 120", batch="[1, 64]"), a_study())
    assert outcomes(found) == {HTTP: "pass", GRPC: "pass", "no cell": "inconclusive"}


def test_a_ratio_without_its_two_cells_is_inconclusive(tmp_path: Path) -> None:
    (found,) = own(
        judged(tmp_path, RATIO.replace("onnx-grpc / onnx-http", "onnx-http / onnx-grpc"), http_alone())
    )
    assert found.outcome == "inconclusive"
    assert found.sentence == "no cell: the study has none of onnx-http and onnx-grpc (it has onnx-http)."
