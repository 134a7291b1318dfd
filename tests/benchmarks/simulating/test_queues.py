"""The simulated queues keep the laws that are known of them."""

import numpy as np
import pytest

from benchmarks.simulating.queues import Requests, Station, arriving, closed, true_percentiles_s


def test_arrivals_at_one_server_wait_as_pollaczek_and_khinchine_have_it() -> None:
    per_s, spread, base_s = 60, 0.5, 0.01
    found = arriving(per_s, Station(base_s, spread=spread), 4_000, np.random.default_rng(1))
    mean_s, square = base_s * np.exp(spread**2 / 2), base_s**2 * np.exp(2 * spread**2)
    expected_s = mean_s + per_s * square / 2 / (1 - per_s * mean_s)
    assert len(found.starts_s) / 4_000 == pytest.approx(per_s, rel=0.01)
    assert found.latencies_s.mean() == pytest.approx(expected_s, rel=0.04)


def test_users_who_wait_fill_all_batches_and_keep_littles_law() -> None:
    station = Station(0.005, 0.001, most_batch=8, instances=2, spread=0.2)
    found = closed(32, station, 60, np.random.default_rng(2)).started(5, 55)
    rate_per_s = len(found.starts_s) / 50
    assert rate_per_s == pytest.approx(station.capacity_per_s, rel=0.02)
    assert rate_per_s * found.latencies_s.mean() == pytest.approx(32, rel=0.01)


def test_a_user_alone_thinks_and_is_served() -> None:
    found = closed(1, Station(0.25), 10, np.random.default_rng(3), think_s=0.75)
    assert found.latencies_s == pytest.approx(np.full(10, 0.25))
    assert found.starts_s == pytest.approx(np.arange(10))


def test_executions_take_as_long_as_their_second_says() -> None:
    found = closed(1, Station(0.1, slow=(1.0, 4.0)), 3, np.random.default_rng(4))
    assert found.latencies_s[0] == pytest.approx(0.1)
    assert found.latencies_s[-1] == pytest.approx(0.4)


def test_requests_are_in_the_seconds_in_which_they_ended() -> None:
    run = Requests(np.array([0.0, 0.9, 1.1]), np.array([0.5, 3.2, 1.3])).run()
    assert [len(second) for second in run.seconds] == [1, 1, 0, 1]
    assert run.seconds[3] == pytest.approx([2.3e9])


def test_true_percentiles_are_of_a_long_run() -> None:
    p50_s, p95_s = true_percentiles_s(Station(0.01), 1.0, (50, 95))
    assert p50_s == pytest.approx(0.01)
    assert 0.01 <= p95_s < 0.011
