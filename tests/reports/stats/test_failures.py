"""Which cells may be ranked, and what is said of the requests that failed."""

from pathlib import Path

import pytest

from reports.cells_csv.sides import load_sides
from reports.compare.matching import RATE, matches
from reports.stats.failures import beside, failed_ns, failed_said, failed_share, rankable, ranks, unranked
from reports.stats.figures import fastest_cell
from reports.study.study import Study, load_study
from reports.summary.summary import Summary
from reports.topics.answer.best import best, dots
from reports.topics.load.cost import cost_answer, cost_table
from reports.topics.load.queue_delay import sound, sweeps
from reports.topics.load.saturation import curves
from reports.topics.load.wire import wires
from reports.topics.runs.runs import failures_by_cell
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.lines import encoded
from tests.reports.open_load import texts

MS = 1_000_000


def failing(
    book: Book,
    name: str,
    each_ms: float,
    *,
    failed: int = 0,
    timeouts: int = 0,
    repeat: int = 1,
    ok: int = 100,
) -> None:
    """A cell whose failures took 2 ms and whose timeouts 500 ms."""
    kinds = {"rejected": failed, "timeout": timeouts}
    counted = {kind: count for kind, count in kinds.items() if count}
    tag = book.add(name, 1, 8, {"w0": [round(each_ms * MS)] * ok}, repeat=repeat, failures=counted)
    last = book.measured(tag)[-1]["histograms"]
    last |= {"failed": encoded([2 * MS] * failed), "timeout": encoded([500 * MS] * timeouts)}


def study_of(folder: Path, book: Book) -> Study:
    book.header["options"] |= {"usd_per_hour": 1.0}
    book.footer()
    return load_study(book.write(folder))


def cell(study: Study, name: str) -> list[Summary]:
    return [run for run in study.runs if run.endpoint == name]


def test_a_cell_ranks_with_up_to_1_percent_of_failures_over_all_its_repeats(tmp_path: Path) -> None:
    book = Book()
    failing(book, "onnx-http", 10, failed=1, ok=99)
    failing(book, "onnx-grpc", 10, failed=1, ok=98)
    failing(book, "trt-http", 10)
    failing(book, "trt-http", 10, repeat=2)
    failing(book, "trt-http", 10, failed=7, repeat=3)
    study = study_of(tmp_path, book)
    shares = {name: failed_share(cell(study, name)) for name in study.endpoints}
    assert shares == pytest.approx({"onnx-grpc": 1 / 99, "onnx-http": 0.01, "trt-http": 7 / 307})
    assert [name for name in shares if ranks(cell(study, name))] == ["onnx-http"]
    assert {run.endpoint for run in rankable(study.runs)} == {"onnx-http"}
    assert unranked(study.runs) == (
        "Not ranked, since more than 1 % of the requests failed: "
        "trt-http/b1/c8 (2.28 %) and onnx-grpc/b1/c8 (1.01 %)."
    )


def test_repeats_without_failures_do_not_make_their_cell_the_fastest(tmp_path: Path) -> None:
    book = Book()
    for repeat, failed in enumerate((0, 0, 9), 1):
        failing(book, "onnx-http", 5, failed=failed, repeat=repeat)
        failing(book, "onnx-grpc", 10, repeat=repeat)
    study = study_of(tmp_path, book)
    assert {run.endpoint for run in fastest_cell(study.runs)} == {"onnx-grpc"}
    assert row(study, "Best").startswith("onnx-grpc: 800 images/s")
    assert row(study, "Best").endswith(
        "Not ranked, since more than 1 % of the requests failed: onnx-http/b1/c8 (2.91 %)."
    )
    chart = dots(study)
    assert chart is None
    assert [wire.way.endpoint for wire in wires(study)] == ["onnx-grpc"]
    assert [shown[0] for shown in texts(cost_table(study))] == ["onnx-grpc"]
    answer = cost_answer(study)
    assert answer is not None
    assert "onnx-grpc/b1/c8" in answer.said


def test_where_every_cell_fails_none_is_the_fastest(tmp_path: Path) -> None:
    book = Book()
    failing(book, "onnx-http", 5, failed=9)
    failing(book, "onnx-grpc", 10, failed=9)
    study = study_of(tmp_path, book)
    answer = best(study)
    assert answer is not None
    assert answer.said == (
        "No endpoint can be called best: every cell under closed-loop load is invalidated or not ranked."
    )
    assert fastest_cell(study.runs) == []
    assert cost_answer(study) is None
    assert cost_table(study).rows == ()


def test_the_time_of_failures_stands_beside_a_figure_of_successes(tmp_path: Path) -> None:
    book = Book()
    failing(book, "onnx-http", 10, failed=3, timeouts=1)
    failing(book, "onnx-http", 10, failed=1, repeat=2)
    failing(book, "onnx-grpc", 10)
    study = study_of(tmp_path, book)
    runs = cell(study, "onnx-http")
    said = "5 of 205 requests failed (2.44 %): mean 2.0 ms and timeout mean 500 ms"
    assert list(failed_said(runs)) == [said]
    assert failed_ns(runs, timed_out=False) == pytest.approx(2 * MS, rel=1e-3)
    assert list(failed_said(cell(study, "onnx-grpc"))) == []
    assert failed_ns(cell(study, "onnx-grpc"), timed_out=True) is None
    assert texts(failures_by_cell(study)) == [
        ["onnx-http/b1/c8", "205", "5", "2.44", "rejected 4, timeout 1", "10.0", "2.0", "500", "0"]
    ]


def test_few_failures_in_a_repeat_that_is_set_aside_are_not_noted(tmp_path: Path) -> None:
    book = Book()
    failing(book, "onnx-http", 10)
    failing(book, "onnx-http", 10, failed=1, repeat=2)
    failing(book, "onnx-grpc", 10)
    failing(book, "onnx-grpc", 10, failed=9, repeat=2)
    study = study_of(tmp_path, book)
    few, many = (cell(study, name) for name in ("onnx-http", "onnx-grpc"))
    assert list(beside(few, few[:1])) == []
    assert list(beside(few, few)) == ["1 of 201 requests failed (0.498 %): mean 2.0 ms"]
    assert list(beside(many, many[:1])) == ["9 of 209 requests failed (4.31 %): mean 2.0 ms"]


def mixed(book: Book, name: str, each_ms: float, failed: int, users: int = 8) -> None:
    """Four repeats of 200 successes, of which the last has so many failures."""
    for repeat in (1, 2, 3, 4):
        failures = {"rejected": failed} if failed and repeat == 4 else {}
        book.add(name, 1, users, {"w0": [round(each_ms * MS)] * 200}, repeat=repeat, failures=failures)


def test_a_level_with_many_failures_is_no_point_of_a_knee(tmp_path: Path) -> None:
    book = Book()
    for users, each_ms, failed in ((1, 10, 0), (4, 20, 8), (16, 80, 9)):
        mixed(book, "onnx-http", each_ms, failed, users)
    (curve,) = curves(study_of(tmp_path, book))
    assert [(point.users, point.tainted) for point in curve.points] == [(1, False), (4, False), (16, True)]


def test_protocols_with_many_failures_are_not_compared(tmp_path: Path) -> None:
    study = {}
    for failed in (8, 9):
        book = Book()
        mixed(book, "onnx-http", 10, 0)
        mixed(book, "onnx-grpc", 5, failed)
        study[failed] = study_of(tmp_path / str(failed), book)
    assert row(study[8], "HTTP or gRPC").startswith("onnx: gRPC faster at 8 users.")
    assert row(study[9], "HTTP or gRPC") == ""


def test_a_queue_delay_with_many_failures_is_not_the_best(tmp_path: Path) -> None:
    book = Book()
    for delay_us, each_ms, failures in ((0, 20, 0), (500, 10, 7)):
        axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us / 1000:g}ms"}
        for repeat in (1, 2, 3):
            failed = {"rejected": failures} if failures and repeat == 3 else {}
            book.add(
                "onnx-http", 1, 8, {"w0": [each_ms * MS] * 200}, repeat=repeat, axes=axes, failures=failed
            )
    (sweep,) = sweeps(study_of(tmp_path, book))
    assert [runs[0].queue_delay_us for runs in sound(sweep)] == [0]


def test_a_cell_with_many_failures_is_not_faster_than_its_like(tmp_path: Path) -> None:
    folders = []
    for name, each_ms, failed in (("base", 10, 0), ("few", 5, 8), ("many", 5, 9)):
        book = Book()
        mixed(book, "onnx-http", each_ms, failed)
        study_of(tmp_path / name, book)
        folders.append(str(tmp_path / name))
    base, few, many = load_sides(folders)
    said = [next(it for it in matches(base, other) if it.measure == RATE).said for other in (few, many)]
    assert said == ["faster", "invalid: failures"]
