"""Shares of requests whose neighbours in time are alike: how many independent ones would tell as much."""

import numpy as np
import pytest
from scipy.special import betainc, stdtrit
from scipy.stats import binomtest

from reports.stats.shares import LEVEL, MANY, Share, alike_neighbours, seconds_needed, share_of
from reports.summary.blocks import Counts

EACH = 100.0


def found(hits: list[float], runs: int = 1) -> Share:
    """Of seconds with 100 requests each, in so many runs of equal length."""
    counts: Counts = np.array(hits, np.float64)
    return share_of(counts, np.full(len(hits), EACH), np.repeat(np.arange(runs), len(hits) // runs))


def test_independent_requests_are_judged_by_the_exact_binomial_tail() -> None:
    share = Share(0.03, 200)
    assert share.p_beyond(0.01, above=True) == pytest.approx(binomtest(6, 200, 0.01, "greater").pvalue)
    assert share.p_beyond(0.05, above=False) == pytest.approx(binomtest(6, 200, 0.05, "less").pvalue)
    interval = binomtest(6, 200).proportion_ci(0.95, "exact")
    assert Share(0.005, 100).p_beyond(0.001, above=True) == pytest.approx(betainc(0.5, 100.5, 0.001))
    assert [Share(hits, 100, 100).p_beyond(0, above=True) for hits in (0, 0.1)] == [1, 0]
    assert share.interval == (pytest.approx(interval.low), pytest.approx(interval.high))


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.0362), (1.0, 0.9638, 1.0)])
def test_none_and_all_are_ends(share: float, low: float, high: float) -> None:
    ends = Share(share, 100)
    assert ends.interval == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert ends.p_beyond(0.5, above=share == 0) == 1.0
    assert ends.p_beyond(0.5, above=share == 1) < 1e-20


def test_three_times_the_requests_tell_three_times_as_much() -> None:
    assert Share(0.1, 50, 10).grown(3) == Share(0.1, 150, 30)


def test_where_none_or_all_are_beyond_seconds_are_all_that_counts() -> None:
    assert found([0] * 6) == Share(0.0, 6.0, 6.0)
    assert found([EACH] * 6) == Share(1.0, 6.0, 6.0)
    assert found([0] * 100).p_beyond(0.01, above=False) == pytest.approx(0.99**100)


def test_a_second_that_was_not_seen_may_have_been_bad_as_a_whole() -> None:
    few, many = Share(0.001, 100_000, 100), Share(0.001, 100_000, 1_000)
    # what is left of 1 % beside the share that was seen, in none of 100 and of 1,000 seconds
    assert few.p_beyond(0.01, above=False) == pytest.approx(0.991**100, rel=0.05)
    assert many.p_beyond(0.01, above=False) == pytest.approx(0.991**1_000, rel=0.3)
    assert Share(0.001, 100_000).p_beyond(0.01, above=False) < 1e-100
    # good seconds that were not seen explain no excess
    assert Share(0.02, 10_000, 100).p_beyond(0.01, above=True) < 1e-15


@pytest.mark.parametrize(
    ("allowed", "seconds"), [(0.5, 6), (0.1, 36), (0.05, 72), (0.01, 368), (0.001, 3_688)]
)
def test_so_many_good_seconds_show_that_few_are_bad(allowed: float, seconds: int) -> None:
    assert seconds_needed(allowed) == seconds
    assert Share(0.0, seconds, seconds).p_beyond(allowed, above=False) <= LEVEL
    assert Share(0.0, seconds - 1, seconds - 1).p_beyond(allowed, above=False) > LEVEL


def test_seconds_that_differ_no_more_than_chance_lets_them_count_every_request() -> None:
    steady = found([10, 11, 9, 10, 9, 11] * 4)
    assert (steady.share, steady.effective) == (pytest.approx(0.1), pytest.approx(2_400))


def test_few_seconds_tell_less_than_their_spread_says() -> None:
    # the variance of 6 values, whose t is 2.571 and not 1.960
    assert found([20, 0, 0, 20, 0, 20]).effective == pytest.approx(
        0.09 / (0.002 * (2.5706 / MANY) ** 2), rel=1e-4
    )
    # that of 8, of which 3.2 are independent, with a t of 2.2 degrees of freedom
    # two runs of five seconds each, which are alike
    twice = found([20, 0, 0, 20, 0] * 2, runs=2)
    assert twice.effective == pytest.approx(0.08 * 0.92 / 0.0012 / (2.306 / MANY) ** 2, rel=1e-4)
    assert twice.seconds == 10
    # two runs that differ, with a t of 12.706, and nothing but chance within them
    between = (0.01 - 0.09 / 1_000) * (12.7062 / MANY) ** 2
    apart = found([0] * 5 + [20] * 5, runs=2)
    assert apart.effective == pytest.approx(0.09 / (0.09 / 1_000 + between), rel=1e-4)
    variance, wide = 800 * 8 / 7 / 800**2 * 8 / 3.2, float(stdtrit(2.2, 0.975)) / MANY
    assert found([20, 20, 0, 0] * 2).effective == pytest.approx(0.09 / (variance * wide**2), rel=1e-4)


@pytest.mark.parametrize(
    ("errors", "runs", "alike"),
    [
        ([1, 1, -1, -1] * 2, 1, 3 / 7),  # (1 / 7 + 1 / 8) / (1 - 3 / 8)
        ([1, 1, -1, -1] * 2, 2, 0),  # four seconds each are too few
        ([1, 1, -1, -1, 1, 1, -1, -1, 1, 1], 2, 1 / 2),  # (0 + 1 / 5) / (1 - 3 / 5)
        ([1, -1] * 8, 1, 0),
        ([1] * 8, 1, 0.95),
        ([0] * 8, 1, 0),
    ],
)
def test_how_alike_neighbours_are(errors: list[float], runs: int, alike: float) -> None:
    of = np.repeat(np.arange(runs), len(errors) // runs)
    assert alike_neighbours(np.array(errors, np.float64), of) == pytest.approx(alike)


def test_what_runs_differ_by_counts_as_one_value_a_run() -> None:
    # the same seconds, once mixed and once by run
    mixed, apart = found([8, 12, 10] * 10, runs=5), found([8] * 12 + [12] * 6 + [10] * 12, runs=5)
    differing = found([5] * 6 + [15] * 6 + [10] * 18, runs=5)
    assert mixed.effective == pytest.approx(3_000)
    assert apart.share < mixed.share
    # the variance of 5 values, whose t is 2.776 and not 1.960; nothing varies within them
    chance = 0.1 * 0.9 / 3_000
    between = (0.05**2 * 2) / 4 / 5
    whole = chance + (between - chance) * (2.776 / 1.960) ** 2
    assert differing.effective == pytest.approx(0.1 * 0.9 / whole, rel=0.01)


def test_runs_that_differ_are_no_likeness_of_neighbours() -> None:
    alternating = [4.0, 6.0] * 5
    one = found([*alternating, *(hits + 10 for hits in alternating)] * 2, runs=4)
    # all but nothing varies within runs, so they are what it rests on: 0.05² * 4 / 3 / 4, with t 3.182
    assert one.effective == pytest.approx(0.09 / (0.05**2 / 3 * (3.182 / 1.960) ** 2), rel=0.15)


def test_a_run_of_very_few_seconds_is_judged_by_the_runs() -> None:
    assert found([10, 12, 8, 10, 10], runs=5).effective == pytest.approx(500)
    assert found([2, 30, 2, 30, 2], runs=5).effective < 60
