"""Ratios of repeats in pairs, how many of them are told from 1, and which are about equal."""

from dataclasses import replace
from math import exp, log
from statistics import fmean, stdev

import pytest
from scipy.stats import ttest_1samp, ttest_rel

from reports.stats.log_ratio import RESOLUTION, LogRatio
from reports.stats.paired import (
    Mean,
    apart_from_best,
    geometric_mean,
    holm,
    mean_of,
    p_unlike,
    paired_ratio,
    told_apart,
    with_least_error,
)

OVER, UNDER = {1: 12.0, 2: 26.4, 3: 39.0, 4: 47.0}, {1: 10.0, 2: 21.0, 3: 31.0, 5: 90.0}


def test_the_interval_is_of_the_repeats_that_both_have() -> None:
    """Against SciPy's own test, though the repeats of a side differ threefold."""
    found = paired_ratio(OVER, UNDER)
    sides = [[log(side[key]) for key in (1, 2, 3)] for side in (OVER, UNDER)]
    tested = ttest_rel(*sides)
    ends = tested.confidence_interval(0.95)
    assert (found.runs, found.freedom) == (3, 2)
    assert found.ratio == pytest.approx(exp(fmean(sides[0]) - fmean(sides[1])))
    assert (found.low, found.high) == pytest.approx((exp(ends.low), exp(ends.high)))
    assert found.p_even == pytest.approx(tested.pvalue)


def test_fewer_than_three_pairs_have_no_interval() -> None:
    found = paired_ratio({1: 20.0, 2: 40.0, 4: 10.0}, {1: 10.0, 2: 20.0, 3: 20.0})
    assert (found.runs, found.low, found.high, found.p_even) == (2, None, None, 1)
    assert found.ratio == pytest.approx(20 / 4_000 ** (1 / 3))
    with pytest.raises(ValueError, match="a value on each side"):
        paired_ratio({}, UNDER)


def test_pairs_and_repeats_that_came_out_alike_are_no_sharper_than_the_histograms() -> None:
    found = paired_ratio({1: 2.0, 2: 4.0, 3: 6.0}, {1: 1.0, 2: 2.0, 3: 3.0})
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2 / RESOLUTION, 2 * RESOLUTION))
    mean = geometric_mean([50.0] * 3)
    assert (mean.value, mean.low, mean.high) == pytest.approx((50, 50 / RESOLUTION, 50 * RESOLUTION))


def test_a_mean_grows_surer_with_more_values_like_those_there_are() -> None:
    mean = mean_of([8.0, 10.0, 12.0])
    assert mean == Mean(10, pytest.approx(2 / 3**0.5), 2, 3)
    assert mean.grown(6) == Mean(10, pytest.approx(2 / 3), 6, 9)
    assert mean.reach() == pytest.approx(4.30265 * 2 / 3**0.5)
    assert mean.p_above(9) == pytest.approx(ttest_1samp([8.0, 10.0, 12.0], 9, alternative="greater").pvalue)
    assert replace(mean, final=True).grown(6).final is False


def test_each_chance_counts_as_often_as_there_are_no_smaller_ones() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.02, 0.019]) == pytest.approx([0.6, 0.057, 0.057])
    assert holm([0.4, 0.9, 0.7]) == [1, 1, 1]
    assert holm([]) == []


def with_p(p: float) -> LogRatio:
    """A ratio above 1 with that two-sided chance."""
    from scipy.special import ndtri

    return LogRatio(exp(-float(ndtri(p / 2)) * 0.1), 3, 0.1)


def test_ratios_are_told_from_1_among_all_that_are_looked_at() -> None:
    assert told_apart([with_p(0.04)]) == [True]
    assert told_apart([with_p(0.04), with_p(0.03)]) == [False, False], "each takes 2.5 %"
    assert told_apart([with_p(0.04), with_p(0.02)]) == [True, True], "the second takes 5 %"
    assert told_apart([LogRatio(9.0, 1), with_p(0.02)]) == [False, True]


def test_no_error_is_below_half_the_middle_one() -> None:
    found = with_least_error(
        [LogRatio(1.1, 3, error, 2) for error in (0.001, 0.02, 0.5)] + [LogRatio(2.0, 1)]
    )
    assert [it.error for it in found] == [0.01, 0.02, 0.5, None]


def test_the_best_is_compared_as_one_of_all_pairs() -> None:
    best = {1: 100.0, 2: 101.0, 3: 99.0}
    far, near = {1: 50.0, 2: 50.4, 3: 49.6}, {1: 99.0, 2: 101.0, 3: 98.0}
    assert apart_from_best(best, [far, near, {1: 90.0}]) == [True, False, None]
    assert apart_from_best(best, [far, {}]) == [True, None]
    assert apart_from_best({}, [far]) == [None]
    # two comparisons of the three that there are between three cells, of a chance of 2 % and of 1.4 % each
    apart, level = ([100 * exp(-by - off) for off in (-0.01, 0.0, 0.01)] for by in (0.0402, 0.0))
    sure = [value * exp(0.0402 - 0.0485) for value in apart]
    for values, told in ((apart, False), (sure, True)):
        sides = [dict(enumerate(side)) for side in (values, level)]
        assert apart_from_best(dict.fromkeys(range(3), 100.0), sides) == [told, False]
    logs = [log(best[key] / near[key]) for key in best]
    assert fmean(logs) / (stdev(logs) / 3**0.5) < 4.3


@pytest.mark.parametrize(
    ("ratio", "error", "equal"),
    [(1.0, 0.03, True), (1.0, 0.05, False), (1.08, 0.01, False), (1.085, 0.005, False), (0.92, 0.005, True)],
)
def test_about_equal_takes_both_of_two_one_sided_tests(ratio: float, error: float, equal: bool) -> None:
    assert (p_unlike(LogRatio(ratio, 3, error, 2)) <= 0.05) is equal
    assert p_unlike(LogRatio(1.0, 1)) == 1


@pytest.mark.parametrize(
    ("values", "mean", "low", "high"),
    [
        # By hand: t(0.975; 1) = 12.7062 times |ln 10 - ln 11| / 2.
        ([10.0, 11.0], 10.4881, 5.72432, 19.2165),
        # t(0.975; 2) = 4.30265 times ln 1.25 / sqrt 3.
        ([8.0, 10.0, 12.5], 10.0, 5.74478, 17.4071),
    ],
)
def test_a_geometric_mean_has_students_interval_of_the_logs(
    values: list[float], mean: float, low: float, high: float
) -> None:
    found = geometric_mean(values)
    assert (found.value, found.low, found.high) == pytest.approx((mean, low, high), rel=1e-4)


def test_a_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        geometric_mean([])
