"""Ratios and means of repeats: their intervals, the least width of these, and how they are told."""

from math import inf, log

import pytest
from scipy.special import stdtr

from reports.stats.log_ratio import RESOLUTION, LogRatio, geometric_mean, log_ratio, welch


def test_the_interval_is_welchs() -> None:
    found = log_ratio([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])
    assert found.ratio == pytest.approx(2.0, rel=1e-2)
    assert found.low is not None
    assert found.high is not None
    assert log(found.high / found.ratio) == pytest.approx(2.776 * 0.0501 * (2 / 3) ** 0.5, rel=0.01)
    assert found.high / found.ratio == pytest.approx(found.ratio / found.low)


@pytest.mark.parametrize(
    ("top", "significant"), [(1.0, False), (1.0019, False), (1.0021, True), (1.01, True)]
)
def test_repeats_that_came_out_alike_are_no_sharper_than_the_histograms(
    *, top: float, significant: bool
) -> None:
    found = log_ratio([top] * 3, [1.0] * 3)
    assert found.low == pytest.approx(top / RESOLUTION)
    assert found.high == pytest.approx(top * RESOLUTION)
    assert found.significant is significant


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (LogRatio(1.05, 3, 0.0137, 2), "1.05× (0.990–1.11)"),
        (LogRatio(1.05, 1), "1.05×"),
        (log_ratio([1.01] * 2, [1.0] * 2), "1.01× (±0.200 %)"),
        (log_ratio([1.0] * 2, [1.0] * 2), "1.00× (0.998–1.00)"),
    ],
)
def test_a_ratio_is_told_with_its_interval(found: LogRatio, said: str) -> None:
    assert found.times == said


def test_what_is_known_of_an_error_takes_no_freedom() -> None:
    assert welch([0.0, 0.0], (2, 2)) == (0, inf)
    assert welch([0.0, 0.0], (2, 2), known=4.0) == (2, inf)
    assert welch([1.0, 0.0], (2, 2)) == (1, 1)
    assert welch([1.0, 0.0], (2, 2), known=1.0) == pytest.approx((2**0.5, 4))


def test_how_likely_a_ratio_is_where_the_true_one_is_1_or_another() -> None:
    found = LogRatio(1.2, 3, 0.05, 2)
    assert found.p_even == pytest.approx(2 * float(stdtr(2, -log(1.2) / 0.05)))
    assert found.p_above(1.1) == pytest.approx(float(stdtr(2, -log(1.2 / 1.1) / 0.05)))
    assert (found.inverse.ratio, found.inverse.p_even) == pytest.approx((1 / 1.2, found.p_even))
    assert found.inverse.low == pytest.approx(1 / (found.high or 0))
    assert (LogRatio(1.2, 1).p_even, LogRatio(1.2, 1).p_above(1)) == (1, 1)


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


def test_a_mean_of_repeats_that_came_out_alike_is_no_sharper_than_the_histograms() -> None:
    found = geometric_mean([50.0] * 3)
    assert (found.value, found.low, found.high) == pytest.approx((50, 50 / RESOLUTION, 50 * RESOLUTION))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([24.12], "24.1 images/s"),
        ([50.0, 50.0], "50.0 images/s (95 % CI 49.9–50.1)"),
        ([8.0, 10.0, 12.5], "10 images/s (95 % CI 5.7–17)"),
    ],
)
def test_a_mean_is_told_with_its_unit_and_its_interval(values: list[float], said: str) -> None:
    assert geometric_mean(values).said("images/s") == said


def test_a_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a mean takes a value"):
        geometric_mean([])


@pytest.mark.parametrize(("top", "bottom"), [([], [1.0]), ([1.0], [])])
def test_a_side_without_a_value_is_refused(top: list[float], bottom: list[float]) -> None:
    with pytest.raises(ValueError, match="a ratio takes a value on each side"):
        log_ratio(top, bottom)
