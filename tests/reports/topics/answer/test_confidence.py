"""The row that says how sure the figures are, and which command would make them surer, in which time."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.page.answer import repeated
from reports.study.study import Study, load_study
from reports.topics.answer.confidence import again, again_s, confidence, repeats_advised
from tests.reports.builder import Book
from tests.reports.topics.answer.measured import MS, add_way, invalidated, serial

COMMAND = "locust -f locustfiles/step7.py --headless --study quick"
SET_UP_S = 60
P99 = "A *: few requests (p99 needs 1,000)."
NO_P99 = "A dash: too few requests (p99 needs 500)."


@pytest.mark.parametrize(
    ("repeats", "said", "detail", "advised"),
    [
        (
            1,
            "Unconfirmed: 1 run per cell, so images/s have no 95 % CI.",
            "Rerun with --repeats 5 to confirm (about 1 min).",
            5,
        ),
        (
            2,
            "Low: 2 runs per cell, 95 % CIs of images/s up to ±0.200 %.",
            "Rerun with --repeats 5 to confirm (about 1 min).",
            5,
        ),
        (
            3,
            "Moderate: 3 runs per cell, 95 % CIs of images/s up to ±0.200 %.",
            "Rerun with --repeats 5 to confirm (about 1 min).",
            5,
        ),
        (
            5,
            "Good: 5 runs per cell, 95 % CIs of images/s up to ±0.200 %.",
            "Rerun with --repeats 10 for narrower CIs (about 1 min).",
            10,
        ),
    ],
)
def test_it_is_as_sure_as_there_are_repeats(
    tmp_path: Path, repeats: int, said: str, detail: str, advised: int
) -> None:
    answer = confidence(serial(tmp_path, onnx_http=[10] * repeats, onnx_grpc=[20] * repeats))
    assert answer is not None
    few = {1: NO_P99, 2: P99}.get(repeats, "")
    assert (answer.said, answer.detail) == (said, f"{detail} {few}".rstrip())
    assert answer.command == f"{COMMAND} --repeats {advised}"


def test_the_cell_with_the_fewest_runs_decides(tmp_path: Path) -> None:
    once = confidence(serial(tmp_path / "1", onnx_http=[10, 11, 12], onnx_grpc=[20]))
    twice = confidence(serial(tmp_path / "2", onnx_http=[10, 11, 12], onnx_grpc=[20, 21]))
    assert once is not None
    assert twice is not None
    assert once.said == "Unconfirmed: as few as 1 run per cell, so some images/s have no 95 % CI."
    assert twice.said == "Low: as few as 2 runs per cell, 95 % CIs of images/s up to ±36.3 %."


@pytest.mark.parametrize(
    ("each_ms", "said"),
    [
        ([10, 10.5, 10, 10.5, 10], "Good: 5 runs per cell, 95 % CIs of images/s up to ±3.37 %."),
        ([10, 30, 10, 30, 10], "Low: 5 runs per cell, 95 % CIs of images/s wider than ±100 %."),
        ([10, 12, 10, 12, 10], "Low: 5 runs per cell, 95 % CIs of images/s up to ±13.2 %."),
    ],
)
def test_however_many_runs_wide_intervals_say_little(
    tmp_path: Path, each_ms: Sequence[float], said: str
) -> None:
    answer = confidence(serial(tmp_path, onnx_http=each_ms, onnx_grpc=[20] * 5))
    assert answer is not None
    assert answer.said == said


def test_the_width_is_that_of_valid_runs_alone(tmp_path: Path) -> None:
    ways = {"onnx-http": [10, 10, 10, 90], "onnx-grpc": [20, 20, 20, 20]}
    answer = confidence(invalidated(tmp_path, ways, ("onnx-http", 4)))
    assert answer is not None
    assert answer.said == (
        "Moderate: as few as 3 runs per cell, 95 % CIs of images/s up to ±0.200 %; "
        "1 of 8 runs invalidated (client-bound 1)."
    )


def test_under_open_loop_load_there_is_no_rate_to_be_sure_of(tmp_path: Path) -> None:
    book = Book()
    for repeat in (1, 2, 3):
        book.add_open("onnx-http", 100, {"w0": [10 * MS] * 400}, repeat=repeat)
    book.footer()
    answer = confidence(load_study(book.write(tmp_path)))
    assert answer is not None
    assert answer.said == "Moderate: 3 runs per cell."


def test_cells_without_a_valid_run_are_counted(tmp_path: Path) -> None:
    ways = {f"w{at:02}-http": [10.0] for at in range(20)}
    two = confidence(invalidated(tmp_path / "2", ways, ("w03-http", 1), ("w09-http", 1)))
    assert two is not None
    assert two.said == (
        "Partial: 2 of 20 cells have no valid run, others 1 run per cell; "
        "2 of 20 runs invalidated (client-bound 2)."
    )
    assert two.command == f"{COMMAND} --repeats 5"
    ways = {"onnx-http": [10, 11], "onnx-grpc": [20, 21, 22], "trt-http": [5, 6]}
    one = confidence(invalidated(tmp_path / "1", ways, ("trt-http", 1), ("trt-http", 2)))
    assert one is not None
    assert one.said.startswith("Partial: 1 of 3 cells has no valid run, others as few as 2 runs per cell; ")


def test_invalidated_runs_do_not_count_and_are_said(tmp_path: Path) -> None:
    ways = {"onnx-http": [10, 11, 12], "onnx-grpc": [20, 21, 22]}
    study = invalidated(tmp_path, ways, ("onnx-http", 1), ("onnx-http", 3), ("onnx-grpc", 2))
    answer = confidence(study)
    assert answer is not None
    assert answer.said == (
        "Unconfirmed: as few as 1 run per cell, so some images/s have no 95 % CI; "
        "3 of 6 runs invalidated (client-bound 3)."
    )


def test_a_run_with_two_caveats_is_invalidated_once_and_a_search_says_how_sure_it_is(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http", [10, 11])
    for code in ("drift", "client-bound", "littles-law"):
        book.caveat({"cell": "onnx-http/b1/c1", "repeat": 1}, code, "so it was")
    book.footer()
    answer = confidence(load_study(book.write(tmp_path)))
    assert answer is not None
    assert answer.said.endswith("; 1 of 2 runs invalidated (client-bound 1, drift 1).")
    book.header["options"]["find_rate"] = "p99<=100"
    assert confidence(load_study(book.write(tmp_path / "search"))) is None


def test_where_every_run_is_invalidated_there_is_none(tmp_path: Path) -> None:
    answer = confidence(invalidated(tmp_path, {"onnx-http": [10, 11]}, ("onnx-http", 1), ("onnx-http", 2)))
    assert answer is not None
    assert answer.said == ("None: no run is valid; 2 of 2 runs invalidated (client-bound 2).")
    assert answer.detail == f"Repeats would not help before that is fixed. {P99}"
    assert answer.command == ""


def test_a_study_that_was_not_finished_is_rerun_as_it_was(tmp_path: Path) -> None:
    answer = confidence(serial(tmp_path, "interrupted", onnx_http=[10], onnx_grpc=[20]))
    assert answer is not None
    assert answer.said == "Incomplete: the study ended as interrupted."
    assert (answer.detail, answer.command) == (f"Rerun it. {NO_P99}", COMMAND)


def test_floors_and_runs_that_never_began_are_asked_nothing(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http-floor", [1])
    book.plan("onnx-http", 1, 1)
    book.footer()
    assert confidence(load_study(book.write(tmp_path))) is None


def many_cells(folder: Path, repeats: Sequence[float]) -> Study:
    """30 cells whose runs take 2 s each, one after the other; the first begins after SET_UP_S."""
    book = Book()
    for batch in range(1, 31):
        add_way(book, "onnx-http", repeats, batch=batch)
    for place, entry in enumerate(book.header["plan"]):
        for record in book.of({"cell": entry["cell"], "repeat": entry["repeat"]}):
            if "second" in record:
                record["second"] += SET_UP_S + 2 * place
    book.footer()
    return load_study(book.write(folder))


@pytest.mark.parametrize(
    ("repeats", "seconds", "said"),
    [(1, 360.0, "about 6 min"), (2, 360.0, "about 6 min"), (5, 660.0, "about 11 min")],
)
def test_the_minutes_are_those_of_the_runs_there_were_and_of_one_set_up(
    tmp_path: Path, repeats: int, seconds: float, said: str
) -> None:
    study = many_cells(tmp_path, [10.0] * repeats)
    assert again_s(study, repeats_advised([repeats] * 30)) == pytest.approx(seconds)
    answer = confidence(study)
    assert answer is not None
    assert f"({said})" in answer.detail


@pytest.mark.parametrize(
    ("counts", "advised"),
    [([], 5), ([0, 0], 5), ([1], 5), ([9, 4], 5), ([5, 6], 10), ([7, 0, 7], 14)],
)
def test_the_repeats_advised_are_by_the_cell_with_the_fewest_that_has_any(
    counts: Sequence[int], advised: int
) -> None:
    assert repeats_advised(counts) == advised


def test_the_number_of_repeats_in_the_command_is_replaced_not_followed_by_another(tmp_path: Path) -> None:
    book = Book(options={"command": "inferswarm run step7 --repeats 2 --floor"})
    add_way(book, "onnx-http", [10, 11])
    book.footer()
    study = load_study(book.write(tmp_path / "named"))
    assert again(study, [2]) == "inferswarm run step7 --floor --repeats 5"
    unnamed = Book(options={})
    unnamed.footer()
    assert again(load_study(unnamed.write(tmp_path / "unnamed")), [2]) == ""


@pytest.mark.parametrize(
    ("command", "again"),
    [
        ("locust -f step7.py --repeats 2", "locust -f step7.py --repeats 5"),
        ("locust -f step7.py --repeats=2 --skip-trt", "locust -f step7.py --skip-trt --repeats 5"),
        (
            "locust -f step7.py --repeats 2 --repeat-until-decided 9 --gate g.toml",
            "locust -f step7.py --gate g.toml --repeats 5",
        ),
        ("locust -f step7.py --repeat-until-decided=9", "locust -f step7.py --repeats 5"),
        ("locust -f step7.py", "locust -f step7.py --repeats 5"),
        ("", ""),
    ],
)
def test_every_way_to_ask_for_repeats_is_replaced(command: str, again: str) -> None:
    assert repeated(command, 5) == again


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (19, "A dash: too few requests (p50 needs 20, p95 100, p99 500)."),
        (40, "A dash: too few requests (p95 needs 100, p99 500)."),
        (100, f"A *: few requests (p95 needs 200). {NO_P99}"),
        (200, NO_P99),
        (500, P99),
        (1_000, ""),
    ],
)
def test_what_the_mark_of_a_percentile_and_a_dash_mean_is_said_where_there_is_one(
    tmp_path: Path, count: int, said: str
) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * count})
    book.footer()
    answer = confidence(load_study(book.write(tmp_path)))
    assert answer is not None
    assert answer.detail == f"Rerun with --repeats 5 to confirm (about 1 min). {said}".rstrip()
