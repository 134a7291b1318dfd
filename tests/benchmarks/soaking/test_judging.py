"""Slopes, rises, descriptors and percentiles, judged as pure functions."""

import random
from collections.abc import Callable

import pytest

from benchmarks.soaking.judging import (
    BROKEN,
    HOLDS,
    UNTOLD,
    Interval,
    Point,
    blocks,
    growth,
    pairs_outside,
    ratio,
    rise,
    rises,
    sameness,
    slope,
    stays,
)

MB = 1_000_000


def looked(value: Callable[[float], float], minutes: float = 1.25, every_s: float = 1.0) -> list[Point]:
    """Looks at a figure of this course, by the minute, for so long."""
    times = [number * every_s / 60 for number in range(round(minutes * 60 / every_s))]
    return [Point(at_min, value(at_min)) for at_min in times]


def noisy(per_min: float, seed: int) -> Callable[[float], float]:
    """Growth beside an allocator that takes and gives back half a megabyte now and then."""
    chance, held = random.Random(seed), [0.0]

    def value(at_min: float) -> float:
        if chance.random() < 0.1:
            held[0] = chance.uniform(-0.25, 0.25)
        return 190 + per_min * at_min + held[0]

    return value


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_leak_is_caught_in_the_time_of_a_quick_soak_and_a_step_is_none(seed: int) -> None:
    stays_so = noisy(0.1, seed)
    assert growth(slope(looked(noisy(3.0, seed))), 1.0) == BROKEN
    assert rises(rise(looked(noisy(3.0, seed), *QUICK)), QUICK[0], 1.0) == BROKEN
    stepped = rise(looked(lambda at_min: stays_so(at_min) + (at_min > 0.6), *QUICK))
    assert rises(stepped, QUICK[0], 1.0) == HOLDS


def test_memory_that_stays_holds_beside_the_same_noise() -> None:
    verdicts = [growth(slope(looked(noisy(0.1, seed))), 1.0) for seed in range(20)]
    assert BROKEN not in verdicts
    assert verdicts.count(HOLDS) >= 19


def test_a_slope_is_what_it_is() -> None:
    found = slope(looked(lambda at_min: 100 + 0.5 * at_min, 17.0, 5.0))
    assert found is not None
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5), rel=0.05)
    assert slope(looked(lambda at_min: 23.0)) == Interval(0.0, 0.0, 0.0)


def test_one_step_is_no_growth_and_steps_all_along_are() -> None:
    one = slope(looked(lambda at_min: 190.0 + (at_min > 0.3)))
    assert one is not None
    assert one.low <= 0 <= one.high
    stairs = slope(looked(lambda at_min: 190.0 + 2 * (at_min // 0.2)))
    assert growth(stairs, 1.0) == BROKEN


HOUR, QUICK = (17.0, 5.0), (1.25, 1.0)
"""Judged minutes of a cell, and seconds from look to look."""


@pytest.mark.parametrize(
    ("course", "of_slope", "of_rise"),
    [
        (lambda at_min: 190.0 + 0.5 * at_min, HOLDS, HOLDS),
        (lambda at_min: 190.0 + 2 * at_min, BROKEN, BROKEN),
        (lambda at_min: 190.0 + 10 * (at_min > 8), HOLDS, HOLDS),
        (lambda at_min: 190.0 + 17.5 * (at_min > 16), HOLDS, UNTOLD),
        (lambda at_min: 190.0 + max(0.0, 50 * (at_min - 14.5)), HOLDS, BROKEN),
        (lambda at_min: 190.0 + 500 * (at_min > 13.7), HOLDS, BROKEN),
        (lambda at_min: 190.0 - 400 * (2 < at_min < 16), HOLDS, BROKEN),
    ],
)
def test_a_rise_sees_what_a_slope_does_not(
    course: Callable[[float], float], of_slope: str, of_rise: str
) -> None:
    points = looked(course, *HOUR)
    assert growth(slope(points), 1.0) == of_slope
    assert rises(rise(points), HOUR[0], 1.0) == of_rise


@pytest.mark.parametrize("seed", range(20))
def test_what_is_late_is_seen_wherever_it_comes(seed: int) -> None:
    chance = random.Random(seed)
    at, noise = chance.uniform(0.1, 0.85) * HOUR[0], noisy(0.1, seed)
    leak = 19 / (HOUR[0] * 0.97 - at)
    for late in (lambda at_min: 19.0 * (at_min > at), lambda at_min: max(0.0, leak * (at_min - at))):
        found = rise(looked(lambda at_min, late=late: noise(at_min) + late(at_min), *HOUR))  # type: ignore[misc]
        assert rises(found, HOUR[0], 1.0) == BROKEN


def test_too_few_looks_tell_nothing() -> None:
    assert slope([]) is None
    few = looked(lambda at_min: at_min)[:7]
    assert (slope(few), rise(few)) == (None, None)
    assert (growth(None, 1.0), rises(None, 17.0, 1.0)) == (UNTOLD, UNTOLD)
    assert growth(slope(looked(noisy(1.0, 1))), 1.0) == UNTOLD


def test_blocks_are_medians_of_equal_times() -> None:
    points = [Point(0.0, 1.0), Point(0.1, 9.0), Point(0.2, 2.0), Point(0.9, 5.0), Point(1.0, 7.0)]
    assert blocks(points, 2) == [Point(0.1, 2.0), Point(0.95, 6.0)]


@pytest.mark.parametrize("length", [HOUR, QUICK])
@pytest.mark.parametrize(
    ("course", "verdict"),
    [
        (lambda part: 66.0 + 30 * (0.2 < part < 0.22), HOLDS),
        (lambda part: 66.0 + (part > 0.9), HOLDS),
        (lambda part: 66.0 + 20 * (part > 0.1), BROKEN),
        (lambda part: 66.0 + 20 * (part > 0.9), BROKEN),
        (lambda part: 66.0 + 1_000 * (part > 0.5), BROKEN),
        (lambda part: 66.0 + 16 * part // 1, BROKEN),
    ],
)
def test_descriptors_may_come_and_go_and_not_grow(
    course: Callable[[float], float], verdict: str, length: tuple[float, float]
) -> None:
    assert stays(looked(lambda at_min: course(at_min / length[0]), *length)) == verdict
    assert stays([]) == UNTOLD


def test_ranks_give_an_interval_of_a_ratio() -> None:
    assert [pairs_outside(size, size) for size in (4, 5, 6, 10)] == [0, 2, 5, 23]
    found = ratio([10.0, 11.0, 12.0, 10.5, 11.5], [20.0, 22.0, 24.0, 21.0, 23.0])
    assert found == Interval(2.0, pytest.approx(21 / 12), pytest.approx(24 / 10.5))
    assert ratio([1.0] * 4, [1.0] * 4) is None
    assert ratio([0.0] * 5, [1.0] * 5) is None


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Interval(1.02, 0.98, 1.06), HOLDS),
        (Interval(1.03, 0.7, 1.4), HOLDS),
        (Interval(1.2, 0.9, 1.5), UNTOLD),
        (Interval(1.4, 1.2, 1.6), BROKEN),
        (Interval(0.6, 0.5, 0.7), BROKEN),
        (None, UNTOLD),
    ],
)
def test_percentiles_are_equal_within_their_doubt(found: Interval | None, verdict: str) -> None:
    assert sameness(found) == verdict
