"""Which law describes throughput best: what is put in comes out, and few runs bring nothing out."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from reports.stats.scaling_laws import (
    LAWS,
    BestLaw,
    NoLaw,
    aicc,
    amdahl,
    best_law,
    flat,
    hard_limit,
    linear,
    one_queue,
    scalability,
)

USERS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])
NOTHING = np.ones((0, 1))
TRUTHS = {
    "constant": 480 * flat(USERS, NOTHING)[:, 0],
    "linear": 20 * linear(USERS, NOTHING)[:, 0],
    "hard limit": 20 * hard_limit(USERS, np.array([[6.0]]))[:, 0],
    "one queue": 480 * one_queue(USERS, np.array([[5.0]]))[:, 0],
    "Amdahl": 20 * amdahl(USERS, np.array([[0.05]]))[:, 0],
    "USL": 20 * scalability(USERS, np.array([[0.05], [0.002]]))[:, 0],
}
SAID: dict[str, list[float]] = {
    "constant": [480],
    "linear": [20],
    "hard limit": [20, 120, 6],
    "one queue": [480, 1000 / 480, 5000 / 480],
    "Amdahl": [20, 0.05, 400],
    "USL": [20, 0.05, 0.002],
}
"""What each law's parameters are to a reader."""


def noisy(truth: str, noise: float, repeats: int, seed: int) -> list[tuple[float, float]]:
    factors = np.exp(noise * np.random.default_rng(seed).standard_normal((repeats, len(USERS))))
    users = np.tile(USERS, repeats).tolist()
    return list(zip(users, (factors * TRUTHS[truth]).ravel().tolist(), strict=True))


def found(points: list[tuple[float, float]]) -> BestLaw:
    law = best_law(points)
    assert isinstance(law, BestLaw), law
    return law


def refused(points: list[tuple[float, float]]) -> str:
    law = best_law(points)
    assert isinstance(law, NoLaw), law
    return law.reason


@pytest.mark.parametrize("truth", TRUTHS)
def test_without_noise_the_law_and_its_parameters_are_those_put_in(truth: str) -> None:
    law = found(noisy(truth, 0, 1, 0))
    assert law.name == truth
    assert [each.value for each in law.estimates] == pytest.approx(SAID[truth], rel=1e-3)
    assert law.miss < 1e-4
    assert list(law.levels) == [1, 128]
    assert law.fitted.rate_at(8) == pytest.approx(TRUTHS[truth][3], rel=1e-4)


@pytest.mark.parametrize("truth", ["hard limit", "one queue", "Amdahl", "USL"])
def test_with_noise_it_is_mostly_the_law_put_in(truth: str) -> None:
    names = [found(noisy(truth, 0.03, repeats, seed)).name for repeats in (1, 3) for seed in range(10)]
    assert names.count(truth) >= 18


ENDS = {
    "constant": [477.84, 485.53],
    "linear": [19.910, 20.231],
    "hard limit": [19.810, 20.347, 119.15, 121.64, 5.8961, 6.0988],
    "one queue": [476.64, 487.19, 2.0526, 2.0980, 10.208, 10.576],
    "Amdahl": [19.730, 20.245, 0.04819, 0.05077, 396.89, 411.39],
    "USL": [19.843, 20.431, 0.04921, 0.05646, 0.00189, 0.00201],
}


@pytest.mark.parametrize("truth", TRUTHS)
def test_intervals_are_those_of_the_linearised_law(truth: str) -> None:
    """With one parameter that is Student's of the mean log."""
    points = noisy(truth, 0.03, 3, 1)
    law = found(points)
    assert [end for one in law.estimates for end in (one.low, one.high)] == pytest.approx(
        ENDS[truth], rel=3e-3
    )
    off = [rate / law.fitted.rate_at(users) for users, rate in points]
    assert law.miss == pytest.approx(np.sqrt(np.mean(np.log(off) ** 2)), rel=1e-3)
    if truth == "linear":
        logs = np.log([rate / users for users, rate in points])
        ends = ttest_1samp(logs, 0).confidence_interval(0.95)
        assert np.exp([ends.low, ends.high]) == pytest.approx(ENDS[truth], rel=1e-4)
    for name, more in law.rivals:
        if name in ("linear", "constant"):
            logs = np.log([rate / (users if name == "linear" else 1) for users, rate in points])
            assert more == pytest.approx(aicc(24 * np.var(logs), 24, 2) - law.fitted.aicc, abs=1e-3)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say(truth: str) -> None:
    (law,) = [each for each in LAWS if each.name == truth]
    every = [found(noisy(truth, 0.03, 3, seed)) for seed in range(100)]
    own = [each for each in every if each.name == truth]
    for at, _ in enumerate(law.parameters):
        ends = [(one.estimates[at].low, one.estimates[at].high) for one in own]
        held = [low <= SAID[truth][at] <= high for low, high in ends if low is not None and high is not None]
        assert len(held) > 80
        assert np.mean(held) > 0.88


def test_mean_value_analysis_is_exact() -> None:
    """Two users who do not think keep the server busy; who think as long as it serves, 4/5 of the time."""
    assert one_queue(np.array([1.0, 2, 3]), np.array([[0.0]]))[:, 0] == pytest.approx([1, 1, 1])
    assert one_queue(np.array([1.0, 2]), np.array([[1.0]]))[:, 0] == pytest.approx([1 / 2, 2 / 2.5])


def test_the_criterion_is_that_of_the_paper_and_takes_no_noise_below_the_resolution() -> None:
    assert aicc(8 * 0.03**2, 8, 3) == pytest.approx(8 * np.log(0.0009) + 6 + 2 * 3 * 4 / (8 - 4))
    assert aicc(0, 8, 3) == aicc(1e-9, 8, 3)


def test_laws_that_are_not_told_apart_are_named() -> None:
    law = found([(users, 50.0) for users in (1, 2, 4, 8, 16, 32)])
    assert law.name == "constant"
    assert not law.not_told_apart
    assert [name for name, _ in law.rivals][-1] == "linear"
    tied = next(
        one for one in (found(noisy("hard limit", 0.1, 1, seed)) for seed in range(20)) if one.not_told_apart
    )
    name, more = tied.rivals[0]
    assert name == tied.not_told_apart[0]
    assert -2 < more < 2


def test_the_same_data_have_the_same_law_in_any_order() -> None:
    data = noisy("Amdahl", 0.03, 3, 0)
    assert best_law(data) == best_law(reversed(data))


def test_a_parameter_has_its_unit_and_its_interval() -> None:
    said = [str(each) for each in found(noisy("one queue", 0, 1, 0)).estimates]
    assert said[0].startswith("limit 480 (47")
    assert said[0].endswith(") images/s")
    assert said[1].startswith("service 2.08 (2.0")
    assert said[2].endswith(") ms an image")


def test_an_interval_that_spans_up_to_a_factor_of_4_is_told() -> None:
    (_, serial, _) = found(noisy("USL", 0.1, 1, 1)).estimates
    assert (serial.low, serial.high) == pytest.approx((0.02877, 0.11139), rel=3e-3)


def test_a_parameter_that_the_levels_do_not_tell_has_no_interval() -> None:
    users = (100, 130, 170, 220, 300, 400)
    rates = 20 * scalability(np.array(users), np.array([[0.5], [0.002]]))[:, 0]
    noise = np.exp(0.001 * np.random.default_rng(0).standard_normal(6))
    law = found(list(zip(users, (rates * noise).tolist(), strict=True)))
    assert "not determined" in " ".join(map(str, law.estimates))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "0 of the 4 levels that it takes"),
        ([(users, 5.0) for users in (1, 8, 16) for _ in range(5)], "3 of the 4 levels that it takes"),
        (
            [(users, 5.0) for users in (1, 2, 4, 8, 16)],
            "5 of the 6 runs that it takes; --repeats 3 would do",
        ),
    ],
)
def test_too_few_points_have_no_law(data: list[tuple[float, float]], reason: str) -> None:
    assert refused(data) == reason


def test_points_off_any_curve_have_no_law() -> None:
    rates = [10, 40, 20, 90, 60, 200, 100, 300]
    data = [(users, rate * by) for users, rate in zip(USERS, rates, strict=True) for by in (0.99, 1.01)]
    reason = refused(data)
    assert reason.startswith("the nearest, ")
    assert "% off its points on average, more than 15 %" in reason


@pytest.mark.parametrize("point", [(0, 5.0), (4, 0.0), (4, -1.0), (4, float("nan"))])
def test_what_is_no_throughput_is_refused(point: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="1 user or more, and rates above 0"):
        best_law([point])
