"""The planted truths are what they are called, and each study of them has its repeats."""

import numpy as np
import pytest

from benchmarks.simulating.scaling import THINK, USERS, holds, percent, seen, truths
from reports.stats.scaling_laws import BestLaw, best_law, one_queue


def test_the_single_queue_is_that_of_mean_value_analysis() -> None:
    planted = truths()["one queue"]
    assert planted.rates == pytest.approx(480 * one_queue(USERS, np.array([[THINK]]))[:, 0])
    assert planted.latencies_ms[0] == pytest.approx(1000 / 480)


def test_only_one_truth_falls_and_batches_come_to_the_servers_capacity() -> None:
    falling = [name for name, truth in truths().items() if truth.rates[-1] < 0.95 * truth.rates.max()]
    assert falling == ["USL, peak at 22"] == [name for name, truth in truths().items() if truth.falls]
    batches = truths()["batches of 32"].rates
    assert batches[0] == pytest.approx(1 / 0.022, rel=0.02)
    assert batches[-1] == pytest.approx(32 / 0.084, rel=0.02)


def test_a_study_has_its_repeats_and_no_peak_without_any() -> None:
    levels = truths()["Amdahl"].study(3, np.random.default_rng(0))
    assert [level.users for level in levels] == USERS.tolist()
    assert {len(level.rates) for level in levels} == {3}
    assert seen(truths()["USL, peak at 22"], 1) == 0


def test_parameters_are_held_or_not() -> None:
    truth = truths()["hard limit"]
    law = best_law(zip(USERS.tolist(), truth.rates.tolist(), strict=True))
    assert isinstance(law, BestLaw)
    assert list(holds(law, truth)) == [True, True, True]
    assert percent([True, False, False, False]) == 25
