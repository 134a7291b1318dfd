"""Planted truths have the percentiles, the spread and the correlation that they state."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulating.truths import LAWS, LOGNORMAL, SLOW_BATCHES, Law, Run, ar1
from reports.histogram.buckets import percentiles_ns
from reports.histogram.codec import decoded, encoded_ns
from reports.summary.blocks import BlockSeries

SECONDS = 20


@pytest.mark.parametrize("name", LAWS)
def test_the_percentiles_of_many_runs_are_those_of_the_law(name: str) -> None:
    law = LAWS[name]
    runs = law.draws(400, SECONDS, np.random.default_rng(1))
    latencies_ns = np.concatenate([run.latencies_ns for run in runs])
    for percent in (50, 95, 99):
        found = float(np.percentile(latencies_ns, percent))
        assert found == pytest.approx(law.percentile_ns(percent, SECONDS), rel=0.01)


def test_seconds_are_correlated_as_stated() -> None:
    values = ar1(100_000, 0.05, 0.8, np.random.default_rng(2))
    assert values.std() == pytest.approx(0.05, rel=0.02)
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(0.8, abs=0.01)


def test_requests_of_a_batch_share_their_latency_and_their_second() -> None:
    run = SLOW_BATCHES.draw(SECONDS, np.random.default_rng(3))
    assert {len(second) for second in run.seconds} == {32, 64}
    assert all(len(set(second)) == len(second) // 32 for second in run.seconds)


def test_a_drift_and_a_regime_change_are_in_the_seconds() -> None:
    random, quiet = np.random.default_rng(4), Law(request=0.0)
    drifting = replace(quiet, drift_per_s=0.01).draw(11, random)
    assert drifting.seconds[10][0] / drifting.seconds[0][0] == pytest.approx(np.exp(0.1))
    switching = replace(quiet, levels=(1.0, 2.0), regime_s=5).draw(1_000, random)
    assert {round(float(second[0]) / 1e6) for second in switching.seconds} == {30, 60}
    assert all((np.ptp(second) == 0) for second in switching.seconds)


def test_the_suite_reads_what_a_ledger_of_the_run_would_hold() -> None:
    run = LOGNORMAL.draw(SECONDS, np.random.default_rng(5))
    text, outside = encoded_ns(run.latencies_ns.round().astype(np.int64).tolist())
    percents = (50.0, 95.0, 99.0)
    assert outside == 0
    assert percentiles_ns(run.whole.histogram("latency"), percents) == percentiles_ns(decoded(text), percents)


def test_failures_are_counted_in_their_seconds() -> None:
    run = Run([np.full(9, 1e6), np.empty(0), np.empty(0)], failures=[1, 0, 2])
    failed, finished = BlockSeries.of([run.blocks, run.blocks]).failed()
    assert failed.tolist() == [1, 2, 1, 2]
    assert finished.tolist() == [10, 2, 10, 2]
    assert run.whole.finished == 12
