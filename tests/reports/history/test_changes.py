"""Change points of single series: where they are told, how large, and what is none."""

from collections.abc import Callable

import numpy as np
import pytest

from reports.history.changes import Course, courses
from reports.history.noise import Floats, likeness, outliers, times_wider

COUNT, AT, NOISE = 60, 40, 0.02


def noise(seed: int, count: int = COUNT, alike: float = 0.0) -> Floats:
    """AR(1) of standard deviation NOISE."""
    found = np.random.default_rng(seed).normal(0, NOISE, count)
    for at in range(1, count):
        found[at] = alike * found[at - 1] + np.sqrt(1 - alike**2) * found[at]
    return found


def told(values: Floats, least: float = 1.02) -> Course:
    return courses([[values]], least)[0][0]


def planted(share: float, begin: int = AT, end: int = COUNT, seed: int = 3) -> Floats:
    values = noise(seed)
    values[begin:end] += np.log1p(share)
    return values


def test_a_step_is_told_where_it_is_with_its_size() -> None:
    (change,) = told(planted(0.1)).changes
    assert change.at == AT
    assert change.first <= AT <= change.last
    assert change.ratio.ratio == pytest.approx(1.1, abs=0.015)
    low, high = change.ratio.low, change.ratio.high
    assert low is not None
    assert high is not None
    assert 1.07 < low < 1.1 < high < 1.13
    assert change.p < 1e-6


def test_a_step_and_its_repair_are_two_changes() -> None:
    up, down = told(planted(0.1, 30, 42)).changes
    assert (abs(up.at - 30) <= 1, abs(down.at - 42) <= 1) == (True, True)
    assert up.ratio.ratio * down.ratio.ratio == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("bad", [1, 2])
def test_what_returns_at_once_is_no_change_but_an_outlier(bad: int) -> None:
    course = told(planted(0.4, AT, AT + bad))
    assert course.changes == ()
    assert course.outlying == set(range(AT, AT + bad))


def test_a_change_needs_three_studies_on_its_new_level() -> None:
    assert told(planted(0.2, COUNT - 2)).changes == ()
    (change,) = told(planted(0.2, COUNT - 3)).changes
    assert change.at == COUNT - 3


def test_an_outlier_beside_a_step_does_not_move_it() -> None:
    values = planted(0.15)
    values[AT - 5] += 0.5
    course = told(values)
    assert [change.at for change in course.changes] == [AT]
    assert course.outlying == {AT - 5}


def test_what_is_below_the_least_effect_is_not_told() -> None:
    values = planted(0.06)
    assert [change.at for change in told(values).changes] == [AT]
    assert told(values, 1.1).changes == ()


def test_a_drift_is_no_stairs() -> None:
    course = told(noise(1) + np.log1p(0.2) * np.arange(COUNT) / COUNT)
    assert course.changes == ()
    assert course.drift == pytest.approx(1.2, abs=0.03)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_studies_have_no_change(count: int) -> None:
    assert told(np.linspace(0, 1, count)) == Course((), frozenset())


def test_equal_values_have_no_change_and_a_step_without_noise_has_one() -> None:
    assert told(np.zeros(20)).changes == ()
    (change,) = told(np.repeat([0.0, 0.5], 10)).changes
    assert change.at == 10


@pytest.mark.parametrize("alike", [0.0, 0.3, 0.6])
def test_good_and_bad_days_are_no_changes(alike: float) -> None:
    """Ten histories of eight series: at 5 % of any false change in each, two are already unlikely."""
    histories = [[noise(100 * seed + one, 100, alike) for one in range(8)] for seed in range(10)]
    false = [any(course.changes or course.drift for course in courses([of])[0]) for of in histories]
    assert sum(false) <= 1


def spikes(random: np.random.Generator, count: int) -> Floats:
    found: Floats = NOISE * random.exponential(1, count)
    return found


def wilder(random: np.random.Generator, count: int) -> Floats:
    wide = np.repeat([0.2, 1.0], [count - count // 2, count // 2])
    found: Floats = NOISE * random.normal(0, 1, count) * wide
    return found


@pytest.mark.parametrize("shape", [spikes, wilder])
def test_noise_of_any_shape_is_no_change(shape: Callable[[np.random.Generator, int], Floats]) -> None:
    """By a t of one variance for all studies, 4 and 10 of ten such histories had a false change."""
    false = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        (of,) = courses([[shape(random, 200) for _ in range(20)]])
        false += any(course.changes for course in of)
    assert false <= 1


def test_the_more_series_are_told_the_surer_each_change_must_be() -> None:
    values = planted(0.04, seed=5)
    (alone,) = told(values).changes
    many = courses([[values, *(noise(seed) for seed in range(10, 40))]])[0][0].changes
    assert alone.p < 0.05
    assert all(change.p > alone.p for change in many)


def test_likeness_is_not_misled_by_a_step() -> None:
    assert likeness([noise(seed, 300) for seed in range(10)])[0] < 0.1
    stepped = [noise(seed, 300, 0.6) + np.repeat([0.0, 0.1], 150) for seed in range(10)]
    found = likeness(stepped)
    assert 0.5 < found[0] < 0.75
    assert found[0] > found[1] > found[2]


def test_the_mean_of_alike_studies_varies_more() -> None:
    assert times_wider(10, np.zeros(6)) == 1.0
    assert times_wider(2, np.array([0.5])) == pytest.approx(1.5)
    assert times_wider(4, np.array([0.5, 0.25])) == pytest.approx(1 + 2 * (0.75 * 0.5 + 0.5 * 0.25))


def test_the_newest_studies_that_stand_out_hide_no_earlier_change() -> None:
    values = planted(0.15, 20, 30)
    values[-2:] += 0.5
    course = told(values)
    assert [change.at for change in course.changes] == [20, 30]
    assert course.outlying == {COUNT - 2, COUNT - 1}
    values[-3] += 0.5
    assert not outliers(values)[-3:].any()
