"""Coordinated omission by simulation keeps what the report says of it."""

import numpy as np
import pytest

from benchmarks.bounds import Bounds
from benchmarks.simulating.omission import ONCE, SECONDS, at_advised_rate, promises
from benchmarks.simulating.queues import Station, closed


def test_every_promise_holds() -> None:
    bounds = Bounds("omission")
    promises(bounds)
    assert bounds.exit_code() == 0


def test_arrivals_come_at_four_fifths_of_the_users_rate() -> None:
    random, station = np.random.default_rng(0), Station(0.01, slow=ONCE)
    runs = [closed(4, station, SECONDS, random) for _ in range(5)]
    arrived = at_advised_rate(runs, station, random)
    rates = [np.mean([len(one.starts_s) / SECONDS for one in found]) for found in (runs, arrived)]
    assert rates == pytest.approx([94.7, 75], abs=2)
