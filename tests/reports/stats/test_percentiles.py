"""Pooled percentiles of a cell: of all requests of its repeats, with an interval by runs or by seconds."""

from collections import Counter
from math import ceil, exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from reports.fold.windows import Results
from reports.histogram.buckets import NS_PER_US, Buckets, compact, indices_of
from reports.histogram.percentiles import (
    BEYOND_GATED,
    ENOUGH,
    LEAST_RESULTS,
    Distribution,
    least_results,
    told_percentiles_ns,
)
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
    assert ENOUGH == {"p50": 20, "p90": 100, "p95": 200, "p99": 1_000, "p99.9": 10_000}
    assert least_results(99.0, BEYOND_GATED) == 5_000
    assert (least_results(0.0), least_results(80.0), least_results(99.99)) == (20, 25, 50_000)
    for name, least in LEAST_RESULTS.items():
        percent = float(name[1:])
        assert told_percentiles_ns(buckets([10.0] * (least - 1)), [percent]) == [None]
        assert told_percentiles_ns(buckets([10.0] * least), [percent]) == pytest.approx([10 * MS], rel=1e-3)


def test_of_few_results_only_mean_and_maximum_are_told_and_checks_of_the_client_have_their_p95() -> None:
    few = Distribution.of(buckets([10.0] * 9 + [50.0]))
    assert few == Distribution(mean_ns=few.mean_ns, max_ns=few.max_ns, few_p95_ns=few.any_p95_ns)
    assert [few.mean_ns, few.max_ns, few.any_p95_ns] == pytest.approx([14 * MS, 50 * MS, 50 * MS], rel=1e-3)
    assert Distribution.of(buckets([])) == Distribution()
    many = Distribution.of(buckets([at / 10 for at in range(1, 5_001)]))
    found = [many.mean_ns, many.p50_ns, many.p90_ns, many.p95_ns, many.p99_ns, many.p999_ns, many.max_ns]
    assert found == pytest.approx([at * MS for at in (250.05, 250, 450, 475, 495, 499.5, 500)], rel=5e-4)
    assert (many.few_p95_ns, many.any_p95_ns) == (None, many.p95_ns)


def told(*runs: RunBlocks, name: str = "p50") -> list[float | None]:
    """A percentile, its interval, and how many results it is of."""
    found = pooled_of(runs, name)
    assert found is not None
    return [found.value, found.low, found.high, found.results]


def test_the_value_is_of_all_requests_and_the_interval_of_the_runs() -> None:
    # of 120 the 60th; a median of medians would be 11 for any sizes, and is here as well
    reach = exp(T_2 * np.std(np.log([10.0, 11.0, 12.0]), ddof=1) / sqrt(3))
    found = told(a_run([10.0] * 50), a_run([11.0] * 40), a_run([12.0] * 30))
    assert found == pytest.approx([11, 11 / reach, 11 * reach, 120], rel=2e-3)


def test_runs_that_have_too_few_each_have_enough_together() -> None:
    assert pooled_of([a_run([10.0] * 40)], "p95") is None
    # repeats that came out alike are no sharper than the histograms
    assert told(*[a_run([10.0] * 40)] * 3, name="p95") == pytest.approx([10, 9.98, 10.02, 120], rel=1e-3)
    assert pooled_of([], "p50") is None
    assert told(*[a_run([0.0] * 40)] * 3) == [0, None, None, 120]


def test_a_run_with_hardly_any_results_has_no_vote_in_the_interval() -> None:
    full = [a_run([value] * 200) for value in (30.0, 31.0)]
    found = told(*full, a_run([145.0] * 5))
    assert [*found[:3], 400] == pytest.approx(
        [31 / 30 * value for value in told(*full)[:3]] + [400], rel=2e-3
    )
    assert found[3] == 405
    # one run that votes has the interval of all seconds, which would reach to the slowest here
    one = told(a_run(*[[10.0] * 30] * 10), a_run([90.0] * 5))
    assert one == [pytest.approx(10, rel=1e-3), None, None, 305]


def test_a_run_that_was_slow_throughout_votes_where_it_has_enough_results() -> None:
    runs = [a_run([10.0] * 200), a_run([10.0] * 200), a_run([40.0] * 50)]
    assert voting_ns(runs, 50) == pytest.approx([10 * MS, 10 * MS, 40 * MS], rel=1e-3)
    assert voting_ns(runs, 95) == pytest.approx([10 * MS, 10 * MS], rel=1e-3)
    assert voting_ns([a_run([10.0] * 40)] * 3, 95) == pytest.approx([10 * MS] * 3, rel=1e-3)


@pytest.mark.parametrize(("votes", "third"), [([10, 10], 99), ([10, 10, 40], 100)])
def test_a_run_votes_with_a_third_of_the_results_of_the_middle_one(votes: list[float], third: int) -> None:
    runs = [a_run([10.0] * 300), a_run([40.0] * third), a_run([10.0] * 600), a_run([])]
    assert sorted(voting_ns(runs, 99)) == pytest.approx([vote * MS for vote in votes], rel=1e-3)


def test_one_run_has_the_interval_of_its_seconds() -> None:
    assert told(a_run(*[[9.0, 10.0, 11.0] * 10] * 10)) == pytest.approx([10, 10, 10, 300], rel=2e-3)
    restless = [[10.0] * 30] * 7 + [[20.0] * 30] * 3
    assert told(a_run(*restless)) == [pytest.approx(10, rel=2e-3), None, None, 300]


def test_seconds_that_are_as_good_as_one_give_no_interval() -> None:
    fast, slow = ([value * times for value in (7, 8, 9, 10, 11, 12, 13)] for times in (1.0, 2.0))
    often = [fast, slow] * 20
    assert None not in told(a_run(*often))
    assert told(a_run(*sorted(often))) == [*told(a_run(*often))[:1], None, None, 280]


@pytest.mark.parametrize("percent", [50, 90, 95])
def test_the_interval_of_seconds_that_are_alike_is_the_exact_one_of_independent_requests(
    percent: int,
) -> None:
    """Of five, and with fewer nothing is told of how they vary."""
    second = [float(at) for at in range(1, 101)]
    share = binomtest(5 * (100 - percent), 500).proportion_ci(0.95, "exact")
    ends = [ceil(100 - 100 * share.high), ceil(100 - 100 * share.low)]
    assert told(a_run(*[second] * 5), name=f"p{percent}")[:3] == pytest.approx([percent, *ends], rel=1e-3)
    assert told(a_run(*[second] * 4), name=f"p{percent}")[1:] == [None, None, 400]


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
