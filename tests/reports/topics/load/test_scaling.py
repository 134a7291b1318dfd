"""Efficiency over instances, GPUs and workers; the published study's four GPUs."""

from pathlib import Path

import pytest

from reports.study.study import load_study
from reports.topics.load.scaling import efficiencies, scaling_table, scalings
from tests.reports.builder import Book
from tests.reports.contention_book import an_arm
from tests.reports.lines import sample_line
from tests.reports.open_load import notes_at, texts

MS = 1_000_000


def test_the_published_four_gpus_are_1_8_times_one_and_so_about_45_percent_efficient() -> None:
    one, four = efficiencies([(4, 43.2), (1, 24.3)])
    assert (one.times.median, one.efficiency_pct.median) == (1, 100)
    assert round(four.times.median, 1) == 1.8
    assert four.efficiency_pct.median == pytest.approx(44.4, abs=0.1), "they rounded 1.8 / 4"


def test_without_one_unit_the_fewest_are_the_measure_and_repeats_count_by_their_median() -> None:
    two, eight = efficiencies([(8, 30), (2, 10), (8, 20), (8, 90)])
    assert (two.units, two.efficiency_pct.median) == (2, 100)
    assert (eight.rate.median, eight.times.median, eight.efficiency_pct.median) == (30, 3, 75)
    assert efficiencies([]) == ()


def test_times_and_efficiency_have_the_range_that_the_repeats_of_both_allow() -> None:
    one, four = efficiencies([(1, 10), (1, 8), (1, 12), (4, 30), (4, 24), (4, 36)])
    assert (str(one.rate), str(one.times), str(one.efficiency_pct)) == ("10.0 (8.00–12.0)", "1.00", "100")
    assert (str(four.times), str(four.efficiency_pct)) == ("3.00 (2.00–4.50)", "75.0 (50.0–112)")
    _, single = efficiencies([(1, 10), (1, 8), (4, 27)])
    assert str(single.times) == "3.00", "one run has no range"


@pytest.mark.parametrize("pair", [(0, 5.0), (1, 0.0)])
def test_what_has_no_efficiency_is_refused(pair: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="units and rates above 0"):
        efficiencies([pair])


def test_runs_that_differ_in_instances_alone_are_compared(tmp_path: Path) -> None:
    book = Book()
    for repeat, (instances, each_ms) in enumerate([(1, 40), (1, 40), (4, 20), (4, 20)], 1):
        tag = book.add("onnx-http", 1, 8, {"w0": [each_ms * MS] * 80}, repeat=repeat)
        book.serving(tag, instances=instances)
    book.serving(book.add("onnx-http", 4, 8, {"w0": [MS] * 80}), instances=2)
    (found,) = scalings(load_study(book.write(tmp_path)))
    assert (found.unit, [step.units for step in found.steps]) == ("instances", [1, 4])
    assert [(step.rate.median, step.efficiency_pct.median) for step in found.steps] == [(200, 100), (400, 50)]


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
    book = Book()
    for repeat, (instances, each_ms) in enumerate([(1, 40)] * 3 + [(4, 20)] * 3, 1):
        tag = book.add("onnx-http", 1, 8, {"w0": [each_ms * MS] * 80}, repeat=repeat)
        book.serving(tag, instances=instances)
        if repeat in (2, 3):
            book.caveat(tag, "worker-lost", "w1")
    table = scaling_table(load_study(book.write(tmp_path)))
    assert texts(table)[1][3:6] == ["400 (400–400)", "2.00", "50.0"]
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
        ["workers", "1", "4.00 (4.00–4.00)", "1.00", "100", "connections"],
        ["workers", "4", "12.0 (12.0–12.0)", "3.00 (3.00–3.00)", "75.0 (75.0–75.0)", "inconclusive"],
    ]
    assert [row[0].split("/")[-1] for row in texts(table)] == ["1w", "4w"]


def test_a_study_of_one_size_has_nothing_to_compare(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [MS] * 80})
    book.add("onnx-http", 1, 8, {"w0": []}, failures={"timeout": 3}, repeat=2)
    assert scaling_table(load_study(book.write(tmp_path / "one"))).rows == ()
    assert scaling_table(load_study(Book().write(tmp_path / "none"))).rows == ()
