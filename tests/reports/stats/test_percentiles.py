"""Pooled percentiles of a cell: of all requests of its repeats, with an interval by runs or by seconds."""

from collections import Counter
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest

from reports.fold.windows import Results
from reports.histogram.buckets import NS_PER_US, Buckets, compact, indices_of
from reports.histogram.percentiles import LEAST_RESULTS, Distribution, least_results, told_percentiles_ns
from reports.stats.figures import images_per_s, in_ms, mean_ms, p50_ms
from reports.stats.percentiles import CellFigure, estimated, pooled, pooled_of, voting_ns
from reports.study.study import load_study
from reports.summary.blocks import RunBlocks
from tests.reports.builder import Book

MS = 1_000_000
T_2 = 4.3027
"""Student's t with two degrees of freedom, at 97.5 %."""


def buckets(values_ms: list[float]) -> Buckets:
    micros = np.array([round(value * MS / NS_PER_US) for value in values_ms], np.int64)
    return compact([Buckets(indices_of(micros), np.ones(len(micros), np.int64))])


def a_run(*seconds_ms: list[float]) -> RunBlocks:
    run = RunBlocks()
    for second, values in enumerate(seconds_ms):
        found = {"latency": buckets(values)}
        run.merge(second, Results(ok=len(values), failure_kinds=Counter(), histograms=found))
    return run


def test_each_percentile_takes_twenty_results_and_five_beyond_it() -> None:
    assert LEAST_RESULTS == {"p50": 20, "p90": 50, "p95": 100, "p99": 500, "p99.9": 5_000}
    assert (least_results(0.0), least_results(80.0), least_results(99.99)) == (20, 25, 50_000)
    for name, least in LEAST_RESULTS.items():
        percent = float(name[1:])
        assert told_percentiles_ns(buckets([10.0] * (least - 1)), [percent]) == [None]
        assert told_percentiles_ns(buckets([10.0] * least), [percent]) == pytest.approx([10 * MS], rel=1e-3)


def test_of_few_results_only_mean_and_maximum_are_told_and_checks_of_the_client_have_their_p95() -> None:
    few = Distribution.of(buckets([10.0] * 9 + [50.0]))
    assert (few.p50_ns, few.p90_ns, few.p95_ns, few.p99_ns, few.p999_ns) == (None,) * 5
    assert [few.mean_ns, few.max_ns, few.any_p95_ns] == pytest.approx([14 * MS, 50 * MS, 50 * MS], rel=1e-3)
    enough = Distribution.of(buckets([10.0] * 100))
    assert (enough.few_p95_ns, enough.any_p95_ns) == (None, enough.p95_ns)
    assert Distribution.of(buckets([])) == Distribution()


def test_the_value_is_of_all_requests_and_the_interval_of_the_runs() -> None:
    found = pooled_of([a_run([10.0] * 50), a_run([11.0] * 40), a_run([12.0] * 30)], "p50")
    assert found is not None
    # of 120 the 60th; a median of medians would be 11 for any sizes, and is here as well
    assert found.results == 120
    spread = np.std(np.log([10.0, 11.0, 12.0]), ddof=1)
    reach = exp(T_2 * spread / sqrt(3))
    assert [found.value, found.low, found.high] == pytest.approx([11, 11 / reach, 11 * reach], rel=2e-3)


def test_runs_that_have_too_few_each_have_enough_together() -> None:
    assert pooled_of([a_run([10.0] * 40)], "p95") is None
    found = pooled_of([a_run([10.0] * 40)] * 3, "p95")
    assert found is not None
    # repeats that came out alike are no sharper than the histograms
    assert [found.value, found.low, found.high] == pytest.approx([10, 9.98, 10.02], rel=1e-3)
    assert pooled_of([], "p50") is None


def test_a_run_with_hardly_any_results_has_no_vote_in_the_interval() -> None:
    full = [a_run([value] * 200) for value in (30.0, 31.0)]
    alone, beside = pooled_of(full, "p50"), pooled_of([*full, a_run([145.0] * 5)], "p50")
    assert alone is not None
    assert beside is not None
    assert (beside.results, beside.value) == (405, pytest.approx(31, rel=1e-3))
    assert beside.high is not None
    assert alone.high is not None
    assert beside.high / beside.value == pytest.approx(alone.high / alone.value)


def test_a_run_that_was_slow_throughout_votes_where_it_has_enough_results() -> None:
    runs = [a_run([10.0] * 200), a_run([10.0] * 200), a_run([40.0] * 50)]
    assert voting_ns(runs, 50) == pytest.approx([10 * MS, 10 * MS, 40 * MS], rel=1e-3)
    assert voting_ns(runs, 95) == pytest.approx([10 * MS, 10 * MS], rel=1e-3)
    assert voting_ns([a_run([10.0] * 40)] * 3, 95) == pytest.approx([10 * MS] * 3, rel=1e-3)


def test_one_run_has_the_interval_of_its_seconds() -> None:
    calm = [[9.0, 10.0, 11.0] * 10] * 10
    found = pooled_of([a_run(*calm)], "p50")
    assert found is not None
    assert [found.value, found.low, found.high] == pytest.approx([10, 10, 10], rel=2e-3)
    restless = [[10.0] * 30] * 7 + [[20.0] * 30] * 3
    wide = pooled_of([a_run(*restless)], "p50")
    assert wide is not None
    assert [wide.value, wide.low, wide.high] == pytest.approx([10, 10, 20], rel=2e-3)


def test_fewer_seconds_than_five_tell_nothing_of_how_they_vary() -> None:
    found = pooled_of([a_run(*[[10.0] * 30] * 4)], "p50")
    assert found is not None
    assert (found.low, found.high) == (None, None)


def test_a_study_knows_the_seconds_of_its_runs(tmp_path: Path) -> None:
    book = Book()
    for repeat, each_ms in enumerate((10, 10, 40), 1):
        tag = book.add("onnx-http", 1, 1, {"w0": [each_ms * MS] * 40}, repeat=repeat)
    book.caveat(tag, "client-bound", "worker w0 at 98 % CPU")
    study = load_study(book.write(tmp_path))
    assert pooled(study, study.runs[:2], "p95") is None
    latency = estimated(study, study.runs, p50_ms)
    rate = estimated(study, study.runs, images_per_s)
    assert latency is not None
    assert rate is not None
    assert (latency.results, rate.results) == (80, 80)
    assert [latency.value, rate.value] == pytest.approx([10, 100], rel=1e-3)
    assert estimated(study, study.runs, in_ms("server.compute_ns")) is None


def test_only_percentiles_of_latency_are_pooled_other_figures_are_geometric_means(tmp_path: Path) -> None:
    book = Book()
    for repeat, (each_ms, count) in enumerate(((10, 300), (40, 100)), 1):
        book.add("onnx-http", 1, 1, {"w0": [each_ms * MS] * count}, repeat=repeat)
    study = load_study(book.write(tmp_path))
    found = [estimated(study, study.runs, value) for value in (p50_ms, mean_ms, images_per_s)]
    assert [one and one.value for one in found] == pytest.approx([10, 20, 50], rel=1e-3)


@pytest.mark.parametrize(
    ("found", "said", "alone"),
    [
        (CellFigure(10.04, 9.0, 11.5, 80), "10 images/s (95 % CI 9.0–12)", "10"),
        (CellFigure(24.12, 24.0, 24.3, 80), "24.1 images/s (95 % CI 24.0–24.3)", "24.1"),
        (CellFigure(24.12, None, None, 80), "24.1 images/s", "24.1"),
    ],
)
def test_a_figure_has_the_digits_of_its_interval_with_it_and_alone(
    found: CellFigure, said: str, alone: str
) -> None:
    assert (found.said(unit=" images/s", what="95 % CI "), found.alone()) == (said, alone)
