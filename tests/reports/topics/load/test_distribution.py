"""What the percentile curve and the histogram of latencies are made of: the ledger's own histograms."""

from pathlib import Path
from typing import Any

import pytest

from reports.histogram import codec
from reports.histogram.buckets import middles_ns, percentiles_ns
from reports.stats.conditions import Condition, condition
from reports.study.study import Study, load_study
from reports.summary.batch import Batch
from reports.topics.load.distribution import DOUBTED, PERCENTS, charts, percentiles_ms
from tests.reports.builder import Book
from tests.reports.example import MS, lognormal
from tests.reports.lines import Record


def study_of(book: Book, tmp_path: Path) -> Study:
    return load_study(book.write(tmp_path))


def drawn(study: Study) -> tuple[dict[str, Any], ...]:
    """The data of the two charts."""
    return tuple(dict(chart.data) for chart in charts(study))


def latencies(book: Book, tag: Record) -> list[str]:
    """The histograms of one run's successes, as its ledger has them."""
    return [window["histograms"]["latency"] for window in book.measured(tag)]


@pytest.mark.parametrize(
    ("results", "last"), [(20, 70.0), (50, 90.0), (100, 95.0), (500, 99.0), (5_000, 99.9), (4_999, 99.8)]
)
def test_a_line_ends_where_five_results_lie_beyond_it(tmp_path: Path, results: int, last: float) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": lognormal(1, 20, results)})
    curve, _ = drawn(study_of(book, tmp_path))
    (line,) = curve["groups"][0]["lines"]
    assert (line["name"], line["requests"], line["doubted"]) == ("onnx-http", results, False)
    assert len(line["ms"]) == len([one for one in curve["percents"] if one <= last])
    assert last in PERCENTS


def test_the_points_are_the_percentiles_of_cells_csv(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 4, 8, {"w0": lognormal(2, 300, 4_000), "w1": lognormal(3, 500, 2_000)})
    study = study_of(book, tmp_path)
    curve, _ = drawn(study)
    (group,) = curve["groups"]
    assert group["title"] == "batch 4, 8 users"
    found = dict(zip(curve["percents"], group["lines"][0]["ms"], strict=False))
    known = study.runs[0].latency
    stated = {50: known.p50_ns, 90: known.p90_ns, 95: known.p95_ns, 99: known.p99_ns, 99.9: known.p999_ns}
    assert [found[percent] for percent in stated] == [(ns or 0) / 1e6 for ns in stated.values()]


def test_repeats_are_added_up_bucket_by_bucket(tmp_path: Path) -> None:
    book = Book()
    tags = [
        book.add("onnx-http", 1, 1, {"w0": lognormal(repeat, 20 * repeat, 150)}, repeat=repeat)
        for repeat in (1, 2, 3)
    ]
    curve, shape = drawn(study_of(book, tmp_path))
    merged = codec.merged(text for tag in tags for text in latencies(book, tag))
    line = curve["groups"][0]["lines"][0]
    assert line["requests"] == merged.total == 450
    percents = curve["percents"][: len(line["ms"])]
    assert [ms * 1e6 for ms in line["ms"]] == pytest.approx(percentiles_ns(merged, percents))
    group = shape["groups"][0]
    (bars,) = group["lines"]
    assert sum(bars["counts"]) == 450
    times_ms = middles_ns(merged.indices) / 1e6
    for low, high, count in zip(group["edges"], group["edges"][1:], bars["counts"], strict=False):
        assert count == merged.counts[(low <= times_ms) & (times_ms < high)].sum()


def test_invalidated_repeats_are_left_out_where_another_is_there(tmp_path: Path) -> None:
    book = Book()
    for name in ("onnx-http", "onnx-grpc"):
        for repeat in (1, 2):
            tag = book.add(name, 1, 1, {"w0": [(10 + repeat) * MS] * 40}, repeat=repeat)
            if repeat == 2 or name == "onnx-grpc":
                book.caveat(tag, "client-bound", "w0 was full")
    study = study_of(book, tmp_path)
    curve, _ = drawn(study)
    grpc, http = sorted(curve["groups"][0]["lines"], key=lambda line: str(line["name"]))
    assert (http["requests"], http["doubted"]) == (40, False)
    assert (grpc["requests"], grpc["doubted"]) == (80, True)
    assert [chart.notes for chart in charts(study)] == [(DOUBTED,)] * 2


def test_each_batch_and_load_has_its_group_and_floors_and_few_results_have_none(tmp_path: Path) -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add("onnx-http", 4, 1, {"w0": [MS] * 40})
    book.add("onnx-http", 1, 8, {"w0": [MS] * 40})
    book.add("onnx-http", 1, 1, {"w0": [MS] * 40})
    book.add("onnx-http", 8, 1, {"w0": [MS] * 19})
    book.add("onnx-http-floor", 16, 1, {"w0": [MS] * 40})
    book.add_open("onnx-http", 50, {"w0": [MS] * 50})
    curve, shape = drawn(study_of(book, tmp_path))
    titles = ["batch 1, 1 user", "batch 4, 1 user", "batch 1, 8 users", "batch 1, 50 requests/s"]
    assert [[group["title"] for group in data["groups"]] for data in (curve, shape)] == [titles] * 2


def test_far_tails_have_a_logarithmic_axis_and_none_is_lost(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [0, *[10 * MS] * 50, 900 * MS]})
    book.add("onnx-grpc", 1, 1, {"w0": [10 * MS] * 52})
    _, shape = drawn(study_of(book, tmp_path))
    (group,) = shape["groups"]
    assert group["log"]
    assert group["edges"] == sorted(group["edges"])
    assert [sum(line["counts"]) for line in group["lines"]] == [52, 52]
    assert [len(line["counts"]) for line in group["lines"]] == [len(group["edges"]) - 1] * 2


def test_near_values_have_an_even_axis_of_as_many_bins_as_the_largest_cell_can_fill(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [(100 + at % 50) * MS for at in range(400)]})
    book.add("onnx-grpc", 1, 1, {"w0": [120 * MS] * 40})
    _, shape = drawn(study_of(book, tmp_path))
    (group,) = shape["groups"]
    assert (group["log"], len(group["edges"])) == (False, 41)
    assert (group["edges"][0], group["edges"][-1]) == pytest.approx((95.2, 156.5), abs=0.2)


def test_a_study_without_enough_results_draws_nothing(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 19})
    assert drawn(study_of(book, tmp_path)) == ()
    assert percentiles_ms(codec.merged([])) == []


def test_a_condition_is_said_by_batch_and_load(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 2, 3, {"w0": [MS] * 40})
    (run,) = study_of(book, tmp_path).runs
    assert condition(run) == Condition(True, "closed", 3, Batch(2, 2))
    assert str(condition(run)) == "batch 2, 3 users"
