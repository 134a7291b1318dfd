"""The simulation of drift calls what the report calls, on runs whose change is known."""

import numpy as np
import pytest

from benchmarks.simulating.drift import (
    CAP_S,
    QUICK_CAP_S,
    WARMING,
    called_of,
    ended,
    found,
    law,
    slowed,
    steady,
)
from benchmarks.simulating.truths import Run

QUIET = law(0.01, kept=0.0)


def a_run(seconds: int) -> Run:
    return QUIET(np.random.default_rng(4), seconds)


def test_a_step_is_found_in_its_second_and_no_change_nowhere() -> None:
    change = found(slowed(a_run(40), lambda at: np.where(at >= 25, 4, 1)))
    assert change is not None
    assert (change.is_step, change.from_s) == (True, 25)
    assert change.percent == pytest.approx(300, abs=5)
    assert found(a_run(40)) is None
    warming = slowed(a_run(18), lambda at: np.where(at >= 8, 4, 1))
    assert (found(warming, 8), found(warming) is None) == (None, False)


def test_shares_are_in_percent() -> None:
    random = np.random.default_rng(5)
    assert called_of(QUIET, steady, random) == 0
    assert called_of(QUIET, lambda at: 1 + 0.05 * at, random) == 100


def test_warm_ups_end_where_they_are_steady_or_at_the_cap() -> None:
    at_s, is_steady = ended(a_run(CAP_S), CAP_S)
    assert (8 <= at_s <= 12, is_steady) == (True, True)
    slow = next(one for one in WARMING if one.settling_s == 20)
    for cap_s in (QUICK_CAP_S, CAP_S):
        assert ended(slowed(a_run(CAP_S), slow.factors), cap_s) == (cap_s, False)
