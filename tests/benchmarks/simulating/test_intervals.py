"""What counts as covered, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulating.intervals import OTHERS, beyond, covered, normal
from benchmarks.simulating.truths import Run
from reports.stats.log_ratio import GeometricMean


def test_an_interval_covers_its_ends_and_what_lies_between() -> None:
    found = [GeometricMean(1.05, 1.0, 1.1), GeometricMean(1.1, 1.01, 1.2), GeometricMean(0.9, 0.8, 0.99)]
    assert covered(found, 1.0) == pytest.approx(100 / 3)
    assert covered([GeometricMean(1.0)], 1.0) == 0


def test_requests_beyond_a_limit_are_counted_by_second_and_run() -> None:
    run = Run([np.array([1.0, 3.0]), np.empty(0), np.array([5.0])])
    hits, requests, runs = beyond([run, run], 2.0)
    assert hits.tolist() == [1, 1, 1, 1]
    assert requests.tolist() == [2, 1, 2, 1]
    assert runs.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("draw", [normal, OTHERS["heavy tails"], OTHERS["skewed"]])
def test_errors_are_around_zero_and_as_wide_as_a_normal_one(draw: object) -> None:
    values = draw(np.random.default_rng(1), (1_000, 200))  # type: ignore[operator]
    assert values.mean() == pytest.approx(0, abs=0.02)
    assert values.std() == pytest.approx(1, rel=0.05)
