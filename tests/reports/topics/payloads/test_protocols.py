"""The map of gRPC over HTTP: ratios of geometric means with pairs' intervals, shaded where told apart."""

from pathlib import Path

import pytest

from reports.page.answer import AnswerRow
from reports.stats.paired import NOT_SIGNIFICANT
from reports.study.study import load_study
from reports.topics.payloads.payloads import FEW, WIDER, heat_of, protocols_answer, protocols_map
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.open_load import notes_at, texts


def both(tmp_path: Path, http_ms: list[float], grpc_ms: list[float]) -> Book:
    book = Book()
    for name, values in (("onnx-http", http_ms), ("onnx-grpc", grpc_ms)):
        for repeat, ms in enumerate(values, 1):
            book.add(name, 4, 1, {"w0": [round(ms * MS)] * 40}, repeat=repeat)
    return book


def test_a_ratio_that_is_told_from_1_is_marked_and_shaded(tmp_path: Path) -> None:
    table = protocols_map(load_study(both(tmp_path, [20, 20.2, 19.8], [10, 10.1, 9.9]).write(tmp_path)))
    assert table.heads == ("backend", "users", "batch 4")
    (row,) = table.rows
    assert [cell.text for cell in row[:2]] == ["onnx", "1"]
    assert row[2].text.startswith("▲ 2.000× (1.996")
    assert row[2].heat == pytest.approx(1.0, abs=0.01)


def test_one_that_is_not_told_from_1_has_neither(tmp_path: Path) -> None:
    cell = protocols_map(load_study(both(tmp_path, [20, 20, 40], [20, 30, 30]).write(tmp_path))).rows[0][2]
    assert cell.text.startswith("0.96")
    assert cell.heat is None
    assert not cell.marks


def test_one_run_has_no_interval_and_says_so(tmp_path: Path) -> None:
    table = protocols_map(load_study(both(tmp_path, [20], [10]).write(tmp_path)))
    assert texts(table) == [["onnx", "1", "2.00×"]]
    assert notes_at(table, 0, 2) == [FEW]
    assert table.rows[0][2].heat is None


def test_a_side_without_a_figure_is_a_dash_with_the_reason(tmp_path: Path) -> None:
    book = both(tmp_path, [20], [])
    book.add("onnx-grpc", 4, 1, {}, failures={"timeout": 2})
    table = protocols_map(load_study(book.write(tmp_path)))
    assert texts(table) == [["onnx", "1", "–"]]
    assert notes_at(table, 0, 2) == ["no request succeeded"]


def test_open_load_and_single_protocols_have_no_ratio(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 50, {"w0": [MS] * 50})
    book.add_open("onnx-grpc", 50, {"w0": [MS] * 50})
    book.add("pytorch-http", 1, 1, {"w0": [MS] * 50})
    study = load_study(book.write(tmp_path))
    assert (protocols_map(study).rows, protocols_answer(study)) == ((), None)


def answered(folder: Path, http_ms: list[float], grpc_ms: list[float]) -> AnswerRow:
    found = protocols_answer(load_study(both(folder, http_ms, grpc_ms).write(folder)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("http_ms", "grpc_ms", "said", "ratio"),
    [
        ([20, 20.2, 19.8], [10, 10.1, 9.9], "gRPC faster", "2.000× (1.996–2.004)"),
        ([10, 10.1, 9.9], [20, 20.2, 19.8], "HTTP faster", "0.500× (0.499–0.501)"),
        ([20, 20, 40], [20, 30, 30], NOT_SIGNIFICANT, "0.96× (0.40–2.28)"),
    ],
)
def test_the_row_says_which_is_faster_by_repeats(
    tmp_path: Path, http_ms: list[float], grpc_ms: list[float], said: str, ratio: str
) -> None:
    found = answered(tmp_path, http_ms, grpc_ms)
    assert found.said == f"onnx: {said} at batch 4."
    more = f" {WIDER}" if said == NOT_SIGNIFICANT else ""
    assert found.detail == f"gRPC over HTTP, images/s: onnx {ratio} at batch 4.{more}"


@pytest.mark.parametrize(("jitter", "repeats"), [((1.0,), "1 repeat"), ((1.0, 1.01), "2 repeats")])
def test_one_or_two_repeats_settle_nothing(tmp_path: Path, jitter: tuple[float, ...], repeats: str) -> None:
    found = answered(tmp_path, [20 * each for each in jitter], [10 * each for each in jitter])
    assert found.said == f"Not settled: {repeats} per cell, 3 are needed."
    assert found.detail == "gRPC over HTTP, images/s: onnx 2.00× at batch 4."


def test_what_is_not_settled_is_told_by_its_range(tmp_path: Path) -> None:
    book = Book()
    for batch, grpc_ms in ((1, 25), (2, 20), (4, 16)):
        for name, ms in (("onnx-http", 20), ("onnx-grpc", grpc_ms)):
            book.add(name, batch, 1, {"w0": [ms * MS] * 40})
    found = protocols_answer(load_study(book.write(tmp_path)))
    assert found is not None
    assert found.detail == "gRPC over HTTP, images/s: onnx 0.80× to 1.25×."


def test_a_ci_that_just_leaves_1_out_has_no_mark_among_many(tmp_path: Path) -> None:
    book = Book()
    for batch in (1, 2, 4, 8, 16):
        for name, values in (("onnx-http", [20, 21, 22]), ("onnx-grpc", [19, 20.2, 20.6])):
            for repeat, ms in enumerate(values, 1):
                book.add(name, batch, 1, {"w0": [round(ms * MS)] * 40}, repeat=repeat)
    (row,) = protocols_map(load_study(book.write(tmp_path))).rows
    assert {cell.text for cell in row[2:]} == {"1.05× (1.02–1.09)"}
    assert {cell.heat for cell in row[2:]} == {None}
    assert row[2].value == pytest.approx(1.0529, rel=1e-3)


def test_batches_that_agree_are_named_together_and_the_most_users_stand_beside_them(tmp_path: Path) -> None:
    times = {(1, 1): (20, 10), (4, 1): (40, 20), (8, 1): (60, 80), (1, 4): (30, 30), (1, 16): (90, 45)}
    book = Book()
    for (batch, users), pair in times.items():
        for name, each_ms in zip(("onnx-http", "onnx-grpc"), pair, strict=True):
            for repeat in (1, 2, 3):
                book.add(name, batch, users, {"w0": [each_ms * MS] * 160}, repeat=repeat)
    found = protocols_answer(load_study(book.write(tmp_path)))
    assert found is not None
    assert found.said == "onnx: gRPC faster at batch 1, batch 4 and 16 users, HTTP faster at batch 8."
    assert "2.000× (1.996–2.004) at 16 users" in found.detail
    assert "4 users" not in found.detail


@pytest.mark.parametrize(("ratio", "heat"), [(1.0, 0.0), (2.0, 1.0), (0.5, -1.0), (8.0, 1.0), (2**0.5, 0.5)])
def test_the_shade_is_the_logarithm_and_full_at_twice(ratio: float, heat: float) -> None:
    assert heat_of(ratio) == pytest.approx(heat)
