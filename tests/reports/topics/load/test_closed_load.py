"""The row on latency under closed-loop load, and its command for open-loop load, which must be accepted."""

from locust.argument_parser import get_empty_argument_parser

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.ledger.axes import Topology
from reports.page.answer import AnswerRow, with_options
from reports.study.study import Study, load_study
from reports.topics.load.closed_load import (
    SAID,
    axis_options,
    latency_kind,
    rounded_down,
    think_times,
    uneven,
)
from reports.topics.report import build_page
from swarm.options.model import Options
from swarm.options.parse import add_options, resolve
from tests.reports.builder import Book

MS = 1_000_000
COMMAND = "locust -f locustfiles/step7.py --headless --study quick"


def study_of(folder: Path, *cells: tuple[str, int, int, int], **more: Any) -> Study:
    """Each cell is an endpoint, its users, its results and the ms of one in fifty of them."""
    book = Book()
    for name, users, results, slow_ms in cells:
        add(book, name, users, results, slow_ms, **more)
    book.footer()
    return load_study(book.write(folder))


def add(
    book: Book, name: str, users: int, results: int, slow_ms: int, quick_ms: int = 10, **more: Any
) -> None:
    some = [(slow_ms if at % 50 == 0 else quick_ms) * MS for at in range(results)]
    book.add(name, 1, users, {"w0": some}, **more)


def row(study: Study) -> AnswerRow:
    answer = latency_kind(study)
    assert answer is not None
    return answer


def options_of(command: str) -> Options:
    """What the suite makes of a command of Locust's, as it would start."""
    parser = get_empty_argument_parser(default_config_files=[])
    parser.add_argument("--headless", action="store_true")
    add_options(parser)
    program, *arguments = shlex.split(command)
    assert program == "locust"
    return resolve(parser.parse_args(arguments))


def test_latency_of_users_who_wait_says_so_once_in_a_page(tmp_path: Path) -> None:
    study = study_of(tmp_path, ("onnx-http", 1, 600, 10))
    assert row(study) == AnswerRow("Latency", f"{SAID}.")
    answers = [answer.text for answer in build_page(study, "DIR").answers]
    assert sum(SAID in text for text in answers) == 1
    assert answers[1] == f"Latency: {SAID}."


def test_arrivals_at_a_rate_have_no_such_row(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 100, {"w0": [10 * MS] * 400})
    assert latency_kind(load_study(book.write(tmp_path))) is None


def test_the_most_uneven_cell_has_the_command_that_shows_what_arrivals_wait(tmp_path: Path) -> None:
    book = Book()
    cells = [("onnx-http", 25, 10), ("onnx-grpc", 90, 10), ("trt-http", 19, 10), ("trt-grpc", 120, 50)]
    for name, slow_ms, quick_ms in cells:
        add(book, name, 8, 600, slow_ms, quick_ms)
    book.footer()
    study = load_study(book.write(tmp_path))
    answer = row(study)
    assert [one.runs[0].endpoint for one in uneven(study)] == ["onnx-grpc", "onnx-http", "trt-grpc"]
    assert answer.detail == (
        "In 3 cells p99 is above twice p50 (onnx-grpc/b1/c8: p99 90.0 ms, p50 10.0 ms). "
        "What arrivals would wait at 80 % of its 690 requests/s:"
    )
    assert answer.command == (
        f"{COMMAND} --endpoints onnx-grpc --batches 1 --rates 550 --arrivals poisson --iterations 1000"
    )
    made = options_of(answer.command)
    assert (made.rates, made.batches, made.endpoints) == ((550.0,), (1,), "onnx-grpc")
    assert (made.arrivals, made.iterations, made.size) == ("poisson", 1_000, "quick")


def test_a_service_that_stalls_is_said_first_though_p99_is_even(tmp_path: Path) -> None:
    book = Book()
    add(book, "onnx-grpc", 8, 600, 90, 10)
    add(book, "onnx-http", 8, 450, 11, 10)  # too few for a p99
    book.caveat({"cell": "onnx-http/b1/c8", "repeat": 1}, "stalls", "9 times nobody was answered")
    book.footer()
    study = load_study(book.write(tmp_path))
    assert [one.runs[0].endpoint for one in uneven(study)] == ["onnx-grpc"]
    detail = row(study).detail
    assert detail.startswith("onnx-http/b1/c8: 9 times nobody was answered. What arrivals would wait at 80 %")


def test_repeats_that_differ_are_no_uneven_replies(tmp_path: Path) -> None:
    book = Book()
    for repeat, quick_ms in ((1, 10), (2, 30)):
        add(book, "onnx-http", 8, 600, quick_ms, quick_ms, repeat=repeat)
    assert len(uneven(load_study(book.write(tmp_path / "unsaid")))) == 1
    for repeat in (1, 2):
        book.caveat({"cell": "onnx-http/b1/c8", "repeat": repeat}, "repeats-differ", "")
    assert uneven(load_study(book.write(tmp_path / "said"))) == []


def test_repeats_are_judged_together_and_too_few_results_not_at_all(tmp_path: Path) -> None:
    assert uneven(study_of(tmp_path / "few", ("onnx-http", 8, 450, 90))) == []
    book = Book()
    for repeat in (1, 2):
        add(book, "onnx-http", 8, 250, 90, repeat=repeat)
    book.footer()
    (found,) = uneven(load_study(book.write(tmp_path / "two")))
    assert (len(found.runs), found.said) == (2, "onnx-http/b1/c8: p99 90.0 ms, p50 10.0 ms")


def test_invalidated_runs_and_floors_ask_for_no_other_load(tmp_path: Path) -> None:
    book = Book()
    add(book, "onnx-http", 8, 600, 90, failures={"timeout": 1})
    add(book, "onnx-http-floor", 8, 600, 90)
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.endpoint("onnx-http-floor", "127.0.0.1:8010")
    study = load_study(book.write(tmp_path))
    assert uneven(study) == []
    assert row(study) == AnswerRow("Latency", f"{SAID}.")


def test_a_study_without_a_command_gets_none(tmp_path: Path) -> None:
    book = Book(options={})
    add(book, "onnx-http", 8, 600, 90)
    answer = row(load_study(book.write(tmp_path)))
    assert answer.command == ""
    assert answer.detail == "In 1 cell p99 is above twice p50 (onnx-http/b1/c8: p99 90.0 ms, p50 10.0 ms)."


AXES = {"channels": "shared", "workers": 1, "hosts": 1, "queue_delay_us": 500, "client": "library"}


@pytest.mark.parametrize(
    ("axes", "given"),
    [
        ({"variant": ""}, {"channels": "per-user", "topology": ""}),
        ({"variant": "shared/1w1h"}, {"channels": "shared", "topology": "1@1", "queue_delay_us": "500"}),
        ({"variant": "shared", "hosts": 0}, {"topology": "1", "client": "library"}),
        ({"variant": "gzip", "compression": "gzip"}, {"compression": "gzip", "shared_memory": ""}),
    ],
)
def test_a_variants_own_axes_are_asked_for(
    tmp_path: Path, axes: Mapping[str, Any], given: Mapping[str, str]
) -> None:
    study = study_of(tmp_path, ("onnx-http", 8, 600, 90), axes={**AXES, **axes})
    made = options_of(row(study).command)
    assert {name: getattr(made, name) for name in given} == given


def test_where_no_option_asks_for_a_cell_there_is_no_command(tmp_path: Path) -> None:
    study = study_of(tmp_path, ("onnx-http", 8, 600, 90), axes=AXES | {"variant": "bbr", "congestion": "bbr"})
    assert row(study).command == ""
    (run,) = uneven(study)[0].runs
    assert axis_options(replace(run, topology=Topology(4, 2)))["--topology"] == "4@2"


def test_options_of_closed_loads_are_left_out(tmp_path: Path) -> None:
    study = study_of(tmp_path, ("onnx-http", 8, 600, 90))
    others = "--batches=1,4 --cells '*/c8' --repeats 3 --compression none,gzip"
    told = {"command": f"{COMMAND} --levels 1,8 {others} --skip-trt"}
    study = replace(study, header={**study.header, "options": told})
    made = options_of(row(study).command)
    assert (made.levels, made.batches, made.cells, made.repeats, made.skip_trt) == ((), (1,), "", 0, True)
    assert made.compression == ""


@pytest.mark.parametrize(
    ("value", "down"), [(18.7, 18), (0.0239, 0.023), (552, 550), (9.99, 9.9), (100, 100)]
)
def test_rates_are_rounded_down_to_two_digits(value: float, down: float) -> None:
    assert rounded_down(value) == down


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("locust -f a.py --rates 5 --batches=2", "locust -f a.py --rates 9"),
        ("locust -f 'my study.py' --rates=5", "locust -f 'my study.py' --rates 9"),
        ("locust -f 'unfinished", ""),
        ("", ""),
    ],
)
def test_options_of_a_command_are_replaced(command: str, made: str) -> None:
    assert with_options(command, {"--rates": "9", "--batches": ""}) == made


def test_what_users_send_by_how_long_they_think(tmp_path: Path) -> None:
    book = Book()
    for users in (1, 4):
        for think, ms in (("", 10), ("exponential:0.5", 20)):
            for repeat in (1, 2, 3):
                axes = {"think": think, "variant": f"think-{think}"}
                book.add("a", 1, users, {"w0": [ms * MS] * 40 * users}, repeat=repeat, axes=axes)
    book.add("b", 1, 1, {"w0": [10 * MS] * 40})
    row = think_times(load_study(book.write(tmp_path)))
    assert row is not None
    rates = ("400 images/s (95 % CI 399–401)", "200 images/s (95 % CI 200–200)")
    assert row.said == (
        f"a, 4 users: {rates[0]} and p95 10.0 ms (10.0–10.0) without, "
        f"{rates[1]} and p95 20.0 ms (20.0–20.0) with exponential 0.5 s."
    )
