"""The simulated queues keep the laws that are known of them."""

import numpy as np
import pytest

from benchmarks.simulating.queues import Requests, Station, arriving, closed


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


def test_requests_are_in_the_seconds_in_which_they_ended() -> None:
    run = Requests(np.array([0.0, 0.9, 1.1]), np.array([0.5, 3.2, 1.3])).run()
    assert [len(second) for second in run.seconds] == [1, 1, 0, 1]
    assert run.seconds[3] == pytest.approx([2.3e9])
