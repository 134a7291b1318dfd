"""Ratios of repeats: their intervals, the least width of these, and how they are told."""

from math import inf, log

import pytest
from scipy.special import stdtr

from reports.stats.log_ratio import RESOLUTION, LogRatio, log_ratio, welch


def test_the_interval_is_welchs() -> None:
    found = log_ratio([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])
    assert found.ratio == pytest.approx(2.0, rel=1e-2)
    assert found.low is not None
    assert found.high is not None
    assert log(found.high / found.ratio) == pytest.approx(2.776 * 0.0501 * (2 / 3) ** 0.5, rel=0.01)
    assert found.high / found.ratio == pytest.approx(found.ratio / found.low)


def test_two_runs_of_each_side_have_an_interval_and_one_has_none() -> None:
    two, one = log_ratio([2.0, 2.4, 2.2], [1.0, 1.1]), log_ratio([6.0], [2.0, 4.5])
    assert (two.runs, two.low is None) == (2, False)
    assert (one.ratio, one.runs, one.error, one.low, one.high) == (pytest.approx(2), 1, None, None, None)


@pytest.mark.parametrize(
    ("top", "significant"), [(1.0, False), (1.0019, False), (1.0021, True), (1.01, True)]
)
def test_repeats_that_came_out_alike_are_no_sharper_than_the_histograms(
    *, top: float, significant: bool
) -> None:
    found = log_ratio([top] * 3, [1.0] * 3)
    assert found.low == pytest.approx(top / RESOLUTION)
    assert found.high == pytest.approx(top * RESOLUTION)
    assert (found.p_even < 0.05) is significant


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (LogRatio(1.05, 3, 0.0137, 2), "1.05× (0.99–1.11)"),
        (LogRatio(1.05, 1), "1.05×"),
        (LogRatio(1.4142, 3, 0.1, 2), "1.41× (0.92–2.17)"),
        (log_ratio([1.01] * 2, [1.0] * 2), "1.010× (1.008–1.012)"),
        (log_ratio([1.0] * 2, [1.0] * 2), "1.000× (0.998–1.002)"),
    ],
)
def test_a_ratio_is_told_with_its_interval(found: LogRatio, said: str) -> None:
    assert found.times == said


def test_what_is_known_of_an_error_takes_no_freedom() -> None:
    assert welch([0.0, 0.0], (2, 2)) == (0, inf)
    assert welch([0.0, 0.0], (2, 2), known=4.0) == (2, inf)
    assert welch([1.0, 0.0], (2, 2)) == (1, 1)
    assert welch([1.0, 0.0], (2, 2), known=1.0) == pytest.approx((2**0.5, 4))


def test_a_small_side_that_is_quiet_by_luck_lends_the_test_no_freedom() -> None:
    assert welch([0.0, 1.0], (2, 10)) == (1, 2)
    assert welch([0.0, 1.0], (3, 10)) == (1, 4)
    assert welch([1.0, 0.0], (3, 10)) == (1, 2)  # the small side alone has less
    assert welch([0.0, 1.0], (2, 10), known=1.0) == pytest.approx((2**0.5, 8))
    assert welch([2.0, 1.0], (3, 3)) == pytest.approx((3**0.5, 9 / 2.5))
    assert welch([1.0, 1.0], (5, 5)) == pytest.approx((2**0.5, 8))


def test_how_likely_a_ratio_is_where_the_true_one_is_1_or_another() -> None:
    found = LogRatio(1.2, 3, 0.05, 2)
    assert found.p_even == pytest.approx(2 * float(stdtr(2, -log(1.2) / 0.05)))
    assert found.p_above(1.1) == pytest.approx(float(stdtr(2, -log(1.2 / 1.1) / 0.05)))
    assert (found.inverse.ratio, found.inverse.p_even) == pytest.approx((1 / 1.2, found.p_even))
    assert found.inverse.low == pytest.approx(1 / (found.high or 0))
    assert (LogRatio(1.2, 1).p_even, LogRatio(1.2, 1).p_above(1)) == (1, 1)


@pytest.mark.parametrize(("top", "bottom"), [([], [1.0]), ([1.0], [])])
def test_a_side_without_a_value_is_refused(top: list[float], bottom: list[float]) -> None:
    with pytest.raises(ValueError, match="a ratio takes a value on each side"):
        log_ratio(top, bottom)
