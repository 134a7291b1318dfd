"""Efficiency over instances, GPUs and workers; the published study's four GPUs."""

from pathlib import Path

import pytest

from reports.stats.log_ratio import log_ratio
from reports.study.study import load_study
from reports.topics.load.scaling import ScalingStep, scaling_table, scalings
from tests.reports.builder import Book
from tests.reports.contention_book import an_arm
from tests.reports.lines import sample_line
from tests.reports.open_load import notes_at, texts

MS = 1_000_000


def a_load(book: Book, by_instances: dict[int, tuple[float, ...]]) -> Book:
    """Eight users, by instances how long each of the repeats' requests took."""
    runs = ((count, each_ms) for count, each in by_instances.items() for each_ms in each)
    for repeat, (instances, each_ms) in enumerate(runs, 1):
        tag = book.add("onnx-http", 1, 8, {"w0": [round(each_ms * MS)] * 80}, repeat=repeat)
        book.serving(tag, instances=instances)
    return book


def steps(folder: Path, by_instances: dict[int, tuple[float, ...]]) -> tuple[ScalingStep, ...]:
    (found,) = scalings(load_study(a_load(Book(), by_instances).write(folder)))
    return found.steps


def test_the_published_four_gpus_are_1_8_times_one_and_so_about_45_percent_efficient(tmp_path: Path) -> None:
    one, four = steps(tmp_path, {1: (8000 / 24.3,), 4: (8000 / 43.2,)})
    assert (one.times, one.efficiency) == (None, None), "it is the measure"
    assert four.times is not None
    assert four.efficiency is not None
    assert round(four.times.ratio, 1) == 1.8
    assert four.efficiency.ratio == pytest.approx(0.444, abs=0.001), "they rounded 1.8 / 4"


def test_without_one_unit_the_fewest_are_the_measure(tmp_path: Path) -> None:
    two, eight = steps(tmp_path, {8: (200.0,), 2: (600.0,)})
    assert (two.units, two.efficiency) == (2, None)
    assert eight.efficiency is not None
    assert (eight.units, eight.efficiency.ratio) == (8, pytest.approx(0.75, rel=1e-3))


def test_times_and_efficiency_have_the_interval_that_the_repeats_of_both_allow(tmp_path: Path) -> None:
    each_ms = {1: (400.0, 408.0, 392.0), 4: (130.0, 140.0, 133.0)}
    _, four = steps(tmp_path, each_ms)
    rates = [[8000 / one for one in of] for of in each_ms.values()]
    expected = log_ratio(rates[1], rates[0])
    assert four.times is not None
    assert four.efficiency is not None
    assert four.times.low is not None
    assert [four.times.ratio, four.times.low] == pytest.approx([expected.ratio, expected.low], rel=2e-3)
    ends = [four.efficiency.low, four.efficiency.high]
    assert ends == pytest.approx([end and end / 4 for end in (four.times.low, four.times.high)])


def test_runs_that_differ_in_instances_alone_are_compared(tmp_path: Path) -> None:
    book = a_load(Book(), {1: (40, 40), 4: (20, 20)})
    book.serving(book.add("onnx-http", 4, 8, {"w0": [MS] * 80}), instances=2)
    (found,) = scalings(load_study(book.write(tmp_path)))
    assert (found.unit, [step.units for step in found.steps]) == ("instances", [1, 4])
    one, four = found.steps
    assert [one.rate.value, four.rate.value] == pytest.approx([200, 400])
    assert four.efficiency is not None
    assert four.efficiency.ratio == pytest.approx(0.5)


def test_numbers_of_gpus_are_those_sampled(tmp_path: Path) -> None:
    book = Book()
    for repeat, gpus in enumerate((1, 4), 1):
        tag = book.add("onnx-http", 1, 8, {"w0": [80 // gpus * MS] * 80}, repeat=repeat)
        book.records.append(sample_line(tag, gpus=[{"power_w": 50.0}] * gpus))
    table = scaling_table(load_study(book.write(tmp_path)))
    assert texts(table) == [
        ["onnx-http/b1/c8", "GPUs", "1", "100", "1.00", "100", "inconclusive"],
        ["onnx-http/b1/c8", "GPUs", "4", "400", "4.00", "100", "inconclusive"],
    ]
    few = ["unconfirmed: one run per cell; rerun with --repeats 5 to confirm"]
    assert [notes_at(table, 1, column) for column in (3, 4, 5)] == [[], few, few]
    assert [notes_at(table, 0, column) for column in (3, 4, 5)] == [[], [], []]


def test_only_the_runs_that_a_ratio_rests_on_count_as_repeats(tmp_path: Path) -> None:
    book = a_load(Book(), {1: (40, 40, 40), 4: (20, 20, 20)})
    for repeat in (2, 3):
        book.caveat({"cell": "onnx-http/b1/c8", "repeat": repeat}, "worker-lost", "w1")
    table = scaling_table(load_study(book.write(tmp_path)))
    assert texts(table)[1][3:6] == ["400 (399–401)", "2.00", "50.0"]
    assert notes_at(table, 1, 4) == [
        "unconfirmed where a cell has one run; rerun with --repeats 5 to confirm"
    ]


def test_workers_are_compared_over_the_cells_of_a_topology(tmp_path: Path) -> None:
    book = Book()
    for code, rate in (("R2", 4.0), ("R6", 12.0)):
        for repeat in (1, 2, 3):
            an_arm(book, code, rate, repeat)
    table = scaling_table(load_study(book.write(tmp_path)))
    assert [row[1:] for row in texts(table)] == [
        ["workers", "1", "4.00 (3.99–4.01)", "1.00", "100", "connections"],
        ["workers", "4", "12.0 (12.0–12.0)", "3.00 (2.99–3.01)", "75.0 (74.9–75.2)", "inconclusive"],
    ]
    assert [row[0].split("/")[-1] for row in texts(table)] == ["1w", "4w"]


def test_a_study_of_one_size_has_nothing_to_compare(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [MS] * 80})
    book.add("onnx-http", 1, 8, {"w0": []}, failures={"timeout": 3}, repeat=2)
    for instances, workers in ((1, ["w0"]), (4, ["w0", "w1"])):  # two things differ, or a floor's alone
        axes = {"variant": f"{instances}i"}
        latencies = {worker: [MS] * 80 for worker in workers}
        book.serving(book.add("onnx-grpc", 1, 8, latencies, axes=axes), instances=instances)
        floor = book.add("onnx-http-floor", 1, 8, {"w0": [MS] * 80}, axes=axes)
        book.serving(floor, instances=instances)
    assert scaling_table(load_study(book.write(tmp_path / "one"))).rows == ()
    assert scaling_table(load_study(Book().write(tmp_path / "none"))).rows == ()
