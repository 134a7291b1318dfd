"""The fastest cell of each way: which that is, what it is compared with, and what is left out."""

from pathlib import Path

from reports.stats.conditions import condition
from reports.study.study import load_study
from reports.topics.answer.contenders import contenders
from tests.reports.builder import Book
from tests.reports.topics.answer.measured import MS, add_way, invalidated, serial


def test_each_way_has_its_fastest_cell_and_the_fastest_way_comes_first(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http", [10])
    add_way(book, "onnx-http", [80], batch=4)
    add_way(book, "onnx-grpc", [10])
    add_way(book, "onnx-grpc", [20], batch=4)
    found = contenders(load_study(book.write(tmp_path)))
    assert [(one.name, one.load, round(one.rate.value, 6)) for one in found] == [
        ("onnx-grpc", "batch 4, 1 user", 200.0),
        ("onnx-http", "batch 1, 1 user", 100.0),
    ]


def test_invalidated_repeats_do_not_count_beside_valid_ones(tmp_path: Path) -> None:
    (one,) = contenders(invalidated(tmp_path, {"onnx-http": [20, 20, 5]}, ("onnx-http", 3)))
    assert [run.repeat for run in one.runs] == [1, 2]
    assert (round(one.rate.value, 6), one.tainted) == (50.0, False)


def test_a_way_without_a_valid_run_comes_last_however_fast(tmp_path: Path) -> None:
    ways = {"onnx-grpc": [5], "onnx-http": [20]}
    found = contenders(invalidated(tmp_path, ways, ("onnx-grpc", 1)))
    assert [(one.name, one.tainted) for one in found] == [("onnx-http", False), ("onnx-grpc", True)]


def test_floors_open_loop_load_and_failures_do_not_compete(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http", [20])
    add_way(book, "onnx-http-floor", [1])
    book.add_open("onnx-grpc", 500, {"w0": [MS] * 400})
    book.add("trt-http", 1, 1, {"w0": []}, failures={"timeout": 3})
    assert [one.name for one in contenders(load_study(book.write(tmp_path)))] == ["onnx-http"]


def test_slower_is_what_three_repeats_or_more_show(tmp_path: Path) -> None:
    def compare(name: str, *each_ms: list[float]) -> bool | None:
        ways = dict(zip(("a_http", "b_http"), each_ms, strict=True))
        first, second = contenders(serial(tmp_path / name, **ways))
        assert first.slower is False
        return second.slower

    assert compare("overlap", [1000 / 30, 50, 40], [1000 / 21, 1000 / 22, 46]) is False
    assert compare("noisy", [10, 10, 10], [10, 25, 12]) is False
    assert compare("apart", [10, 10.1, 10], [20, 20.1, 20]) is True
    assert compare("near and settled", [10, 10, 10], [10.5, 10.5, 10.5]) is True
    assert compare("twice", [10, 10.1], [20, 20.1]) is None
    assert compare("single", [10, 10.1], [20]) is None


def test_a_share_of_anothers_rate_has_an_interval(tmp_path: Path) -> None:
    first, second = contenders(serial(tmp_path, a_http=[10, 10.1, 10], b_http=[20, 20.1, 20]))
    assert second.over(first) == "0.501× (0.497–0.504)"


def test_a_load_in_words(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http", [20], batch=4, users=2)
    book.add_open("onnx-http", 12.5, {"w0": [MS] * 25})
    said = [str(condition(run)) for run in load_study(book.write(tmp_path)).runs]
    assert said == ["batch 4, 2 users", "batch 1, 12.5 requests/s"]
