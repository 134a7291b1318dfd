"""The Universal Scalability Law: what is put in comes out, and noise brings nothing out."""

import numpy as np
import pytest

from reports.stats.usl import Fit, NoFit, fit_usl

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)
FEW = (1, 8, 16, 32)
LAMBDA = 20.0


def law(users: float, sigma: float, kappa: float) -> float:
    return LAMBDA * users / (1 + sigma * (users - 1) + kappa * users * (users - 1))


def points(
    sigma: float,
    kappa: float,
    noise: float = 0.0,
    repeats: int = 1,
    seed: int = 0,
    levels: tuple[int, ...] = LEVELS,
) -> list[tuple[float, float]]:
    """Rates of the law, each times a factor of its own."""
    factors = np.exp(np.random.default_rng(seed).normal(0, noise, (len(levels), repeats)))
    return [
        (users, law(users, sigma, kappa) * factor)
        for users, of_level in zip(levels, factors.tolist(), strict=True)
        for factor in of_level
    ]


def fitted(found: Fit | NoFit) -> Fit:
    assert isinstance(found, Fit), found
    return found


def refused(found: Fit | NoFit) -> str:
    assert isinstance(found, NoFit), found
    return found.reason


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.02, 0.03])
@pytest.mark.parametrize(
    ("sigma", "kappa"), [(0.05, 0.001), (0.1, 0.001), (0.1, 0.002), (0.2, 0.003), (0.4, 0.01)]
)
def test_sigma_and_kappa_are_recovered_within_a_tenth(
    sigma: float, kappa: float, noise: float, seed: int
) -> None:
    found = fitted(fit_usl(points(sigma, kappa, noise, repeats=10, seed=seed)))
    assert found.sigma.value == pytest.approx(sigma, rel=0.1)
    assert found.kappa.value == pytest.approx(kappa, rel=0.1)
    assert found.r_squared > 0.9


def test_without_noise_they_are_exact_and_so_is_the_peak() -> None:
    found = fitted(fit_usl(points(0.05, 0.001)))
    assert found.lambda_.value == pytest.approx(LAMBDA, rel=1e-4)
    assert (found.sigma.value, found.kappa.value) == pytest.approx((0.05, 0.001), rel=1e-3)
    assert found.peak is not None
    assert found.peak.users.value == pytest.approx(np.sqrt(0.95 / 0.001), rel=1e-3)
    assert found.peak.rate == pytest.approx(law(np.sqrt(0.95 / 0.001), 0.05, 0.001), rel=1e-3)
    assert not found.peak.extrapolated
    assert found.rate_at(8) == pytest.approx(law(8, 0.05, 0.001), rel=1e-3)
    assert found.levels == (1, 128)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say(repeats: int) -> None:
    found = [fitted(fit_usl(points(0.1, 0.001, 0.03, repeats, seed))) for seed in range(100)]
    for name, truth in (("lambda_", LAMBDA), ("sigma", 0.1), ("kappa", 0.001)):
        estimates = [getattr(fit, name) for fit in found]
        assert 88 <= sum(each.low <= truth <= each.high for each in estimates) <= 100
        assert all(each.low <= each.value <= each.high for each in estimates)


def test_the_same_data_have_the_same_intervals_in_any_order() -> None:
    data = points(0.1, 0.001, 0.03, repeats=3)
    assert fit_usl(data) == fit_usl(reversed(data))


@pytest.mark.parametrize("levels", [LEVELS, FEW])
@pytest.mark.parametrize("repeats", [1, 2, 5])
@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_flat_noise_has_no_fit(levels: tuple[int, ...], repeats: int, noise: float) -> None:
    found = [fit_usl(points(1, 0, noise, repeats, seed, levels)) for seed in range(50)]
    assert not [fit for fit in found if isinstance(fit, Fit)]


@pytest.mark.slow
def test_loud_flat_noise_has_a_fit_at_most_by_chance() -> None:
    found = [fit_usl(points(1, 0, 0.15, repeats, seed)) for repeats in (1, 3) for seed in range(100)]
    assert sum(isinstance(fit, Fit) for fit in found) <= 4


def test_constant_rates_have_no_fit() -> None:
    assert "cannot be told from one that does not vary" in refused(fit_usl(points(1, 0, repeats=2)))


def test_a_small_difference_between_levels_has_no_fit() -> None:
    data = [(users, 50 * (1 + 0.01 * place)) for place, users in enumerate(LEVELS) for _ in range(2)]
    assert refused(fit_usl(data)) == "the throughput varies by 7.00 %, too little to tell a curve"


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("repeats", [1, 3])
def test_linear_growth_has_neither_contention_nor_a_peak(noise: float, repeats: int) -> None:
    found = fitted(fit_usl(points(0, 0, noise, repeats)))
    assert found.sigma.low == found.kappa.low == 0
    assert found.sigma.high < 0.002
    assert found.kappa.high < 2e-5
    assert found.lambda_.value == pytest.approx(LAMBDA, rel=0.02)
    assert found.peak is None
    assert found.no_peak == "κ may be 0: the curve need not fall again"


def test_growth_to_a_ceiling_has_no_peak() -> None:
    found = fitted(fit_usl(points(0.2, 0, 0.02, repeats=3)))
    assert found.sigma.value == pytest.approx(0.2, rel=0.1)
    assert found.peak is None


def test_a_peak_above_the_levels_is_an_extrapolation_and_one_far_above_is_not_told() -> None:
    near = fitted(fit_usl(points(0.05, 1e-4, 0.002, 3, levels=(1, 2, 4, 8, 16, 32, 64))))
    assert near.peak is not None
    assert near.peak.extrapolated
    assert near.peak.users.value == pytest.approx(np.sqrt(0.95e4), rel=0.1)
    far = fitted(fit_usl(points(0.05, 1e-4, 0.0005, 3, levels=(1, 2, 4, 8, 16, 32))))
    assert far.peak is None
    assert far.no_peak == "beyond twice the 32 users tested: extrapolated"


def test_throughput_that_falls_from_the_first_user_on_peaks_there() -> None:
    found = fitted(fit_usl(points(1, 0.01, 0.01, repeats=3)))
    assert found.sigma.value == pytest.approx(1, abs=0.1)
    assert found.peak is not None
    assert found.peak.users.value < 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "0 of the 4 levels that it takes"),
        (points(0.1, 0.001, repeats=5, levels=(1, 8, 16)), "3 of the 4 levels that it takes"),
        (points(0.1, 0.001, levels=FEW), "4 of the 5 runs that it takes; --repeats 3 would do"),
    ],
)
def test_too_few_points_have_no_fit(data: list[tuple[float, float]], reason: str) -> None:
    assert refused(fit_usl(data)) == reason


def test_points_off_any_curve_have_no_fit() -> None:
    rates = [10, 40, 20, 90, 60, 200, 100, 300]
    data = [
        (users, rate * factor) for users, rate in zip(LEVELS, rates, strict=True) for factor in (0.99, 1.01)
    ]
    assert "% off its points on average, more than 15 %" in refused(fit_usl(data))


def test_levels_that_do_not_tell_the_parameters_apart_have_no_fit() -> None:
    data = points(0.5, 0.002, 0.02, 3, levels=(100, 130, 170, 220, 400))
    assert "the levels do not determine" in refused(fit_usl(data))


@pytest.mark.parametrize("point", [(0, 5.0), (4, 0.0), (4, -1.0), (4, float("nan"))])
def test_what_is_no_throughput_is_refused(point: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="1 user or more, and rates above 0"):
        fit_usl([point])
