"""The knee, how many users are enough, and a peak only where a fall is measured."""

import numpy as np
import pytest
from scipy.special import stdtrit

from reports.stats.knee import Fall, Level, enough, fall, knee_of, still_rising

USERS = (1, 2, 4, 8, 16, 32, 64, 128)


def levels(rates: dict[float, float], latencies_ms: dict[float, float] | None = None) -> list[Level]:
    """Without latencies they are what users who wait for each answer have on average."""
    known = latencies_ms or {users: 1000 * users / rate for users, rate in rates.items()}
    return [Level(users, (rate,), known[users]) for users, rate in rates.items()]


def repeated(shares: dict[int, float], noise: float, repeats: int, seed: int = 0) -> list[Level]:
    factors = np.exp(noise * np.random.default_rng(seed).standard_normal((len(shares), repeats)))
    rates = (np.array(list(shares.values()))[:, None] * 100 * factors).tolist()
    return [Level(users, tuple(some), 10.0) for users, some in zip(shares, rates, strict=True)]


def test_the_knee_is_where_a_step_gains_as_much_as_it_costs() -> None:
    found = levels({1: 50, 8: 300, 16: 414, 64: 470, 128: 480}, {1: 20, 8: 33, 16: 43, 64: 140, 128: 289})
    assert knee_of(found).users == 16
    assert knee_of(found).power == pytest.approx(414 / 43)
    assert enough(found).users == 64
    assert not still_rising(found)


def test_a_single_server_without_think_time_is_best_with_one_user() -> None:
    found = levels(dict.fromkeys(USERS, 100.0))
    assert (knee_of(found).users, enough(found).users) == (1, 1)


def test_without_a_latency_the_power_has_no_end() -> None:
    assert knee_of([Level(1, (10.0,), 5.0), Level(2, (20.0,), 0.0)]).users == 2


def test_enough_is_the_first_level_with_95_percent_of_the_highest() -> None:
    assert enough(levels({1: 10, 8: 38, 16: 40, 32: 38})).users == 8
    assert enough(levels({1: 10, 8: 95, 16: 100, 32: 96})).users == 8
    assert enough(levels({1: 10, 8: 38.1, 16: 40, 32: 38})).users == 8
    assert enough(levels({1: 10, 8: 37.9, 16: 40, 32: 38})).users == 16


@pytest.mark.parametrize(
    ("rates", "latencies_ms", "rising"),
    [
        ({4: 20, 8: 40, 16: 43}, {4: 10, 8: 11, 16: 11.5}, True),
        ({4: 20, 8: 40, 16: 42.7}, {4: 10, 8: 11, 16: 11.5}, False),  # gains 6.75 %
        ({4: 20, 8: 40, 16: 48}, {4: 10, 8: 11, 16: 13.5}, False),  # gains 20 %, costs 23 %
        ({6: 40, 8: 40, 12: 44}, {6: 10, 8: 11, 12: 10.9}, True),  # from 6, not from 8
        ({6: 41.5, 8: 41.5, 12: 44}, {6: 10, 8: 10.4, 12: 10.5}, False),
        ({6: 40, 8: 42, 10: 42.5}, {6: 10, 8: 10, 10: 10}, True),  # the first, where none has half of them
        ({1: 10, 8: 40, 32: 45}, {1: 10, 8: 11, 32: 12}, False),  # two doublings: 6.1 % each
        ({1: 10, 8: 40, 32: 47}, {1: 10, 8: 11, 32: 12}, True),  # and 8.4 %
    ],
)
def test_it_rises_while_the_last_doubling_gains_more_than_7_percent_and_costs_less(
    rates: dict[float, float], latencies_ms: dict[float, float], rising: bool
) -> None:
    assert still_rising(levels(rates, latencies_ms)) is rising


def test_a_fall_is_told_with_the_least_that_the_test_allows() -> None:
    found = fall(
        [Level(users, (rate * 0.99, rate, rate * 1.01), 1) for users, rate in ((1, 60), (8, 100), (16, 80))]
    )
    assert isinstance(found, Fall)
    assert (found.peak.users, found.at.users) == (8, 16)
    assert found.share == pytest.approx(0.8)
    # t of 2.5 % / 2 at 6 degrees of freedom is 2.969, the standard deviation of the logs 1 %.
    assert found.most == pytest.approx(0.8 * np.exp(2.969 * 0.01 * np.sqrt(2 / 3)), rel=1e-3)


def test_a_level_that_varies_more_than_all_together_is_judged_by_its_own_variance() -> None:
    """And none by less than histograms of three digits tell apart."""
    loud = fall([Level(1, (60.0, 60.0), 1), Level(8, (100.0,) * 3, 1), Level(16, (49.0, 50.0, 51.0), 1)])
    even = fall([Level(1, (60.0, 60.0), 1), Level(8, (100.0,) * 3, 1), Level(16, (50.0,) * 3, 1)])
    assert loud is not None
    assert even is not None
    own, least = np.var(np.log([49.0, 50.0, 51.0]), ddof=1), np.log(1.002) ** 2
    wide = float(stdtrit(5, 1 - 0.025 / 2))
    assert loud.most / loud.share == pytest.approx(np.exp(wide * np.sqrt(own / 3 + own * 2 / 5 / 3)))
    assert even.most / even.share == pytest.approx(np.exp(wide * np.sqrt(least / 3 + least / 3)))
    two = fall([Level(8, (100.0, 101.0), 1), Level(16, (50.0, 50.5), 1)])
    assert two is not None
    assert (two.peak.users, two.at.users) == (8, 16)
    assert Level(1, (10.0, 40.0), 4).power == pytest.approx(20 / 4)


@pytest.mark.parametrize(
    "found",
    [
        [Level(users, (rate,), 1) for users, rate in ((1, 60), (8, 100), (16, 50))],
        [Level(1, (60, 61), 1), Level(8, (100, 101), 1), Level(16, (50,), 1)],
        [Level(users, (rate, rate), 1) for users, rate in ((1, 60), (8, 100), (16, 95.5))],
        [Level(users, (rate, rate), 1) for users, rate in ((1, 60), (8, 100), (16, 95))],
        [Level(users, (rate, rate), 1) for users, rate in ((1, 60), (8, 90), (16, 50), (32, 100))],
        [Level(1, (60, 61), 1)],
        [],
    ],
    ids=[
        "single runs",
        "last one single",
        "below 5 %",
        "just 5 %",
        "the last is the highest",
        "one level",
        "none",
    ],
)
def test_no_fall_is_told(found: list[Level]) -> None:
    assert fall(found) is None


@pytest.mark.parametrize("repeats", [2, 3, 5])
@pytest.mark.parametrize("loud", [1, 5])
def test_flat_throughput_seldom_has_a_peak(repeats: int, loud: float) -> None:
    """Also where the last level varies five times as much as the others."""
    found = 0
    for seed in range(300):
        last = repeated({128: 1.0}, 0.02 * loud, repeats, seed + 1_000)
        found += fall([*repeated(dict.fromkeys(USERS[:-1], 1.0), 0.02, repeats, seed), *last]) is not None
    assert found <= (0.025 if loud == 1 else 0.08) * 300


def test_a_fall_of_12_percent_is_seen_with_three_repeats() -> None:
    shares = dict.fromkeys(USERS, 1.0) | {128: 0.88}
    assert sum(fall(repeated(shares, 0.03, 3, seed)) is not None for seed in range(100)) >= 90
