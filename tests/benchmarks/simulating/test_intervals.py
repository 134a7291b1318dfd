"""What counts as covered, and what is drawn."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulating.intervals import OTHERS, coverage_of, covered, normal
from benchmarks.simulating.truths import LOGNORMAL
from reports.stats.paired import GeometricMean


def test_an_interval_covers_its_ends_and_what_lies_between() -> None:
    found = [GeometricMean(1.05, 1.0, 1.1), GeometricMean(1.1, 1.01, 1.2), GeometricMean(0.9, 0.8, 0.99)]
    assert covered(found, 1.0) == pytest.approx(100 / 3)
    assert covered([GeometricMean(1.0)], 1.0) == 0


def test_a_cells_percentiles_are_held_where_there_are_any() -> None:
    assert coverage_of(replace(LOGNORMAL, per_s=1.0), 3, studies=5)["p99"] == 0
    assert coverage_of(LOGNORMAL, 3, studies=20)["p50"] >= 80


@pytest.mark.parametrize("draw", [normal, OTHERS["heavy tails"], OTHERS["skewed"]])
def test_errors_are_around_zero_and_as_wide_as_a_normal_one(draw: object) -> None:
    values = draw(np.random.default_rng(1), (1_000, 200))  # type: ignore[operator]
    assert values.mean() == pytest.approx(0, abs=0.02)
    assert values.std() == pytest.approx(1, rel=0.05)
