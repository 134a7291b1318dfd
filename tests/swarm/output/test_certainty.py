"""How sure a look at a measure phase under way must be, so that all looks together are."""

from bisect import bisect_left
from collections import Counter

import numpy as np
import pytest

from benchmarks.simulating.stops import ALIKE, INDEPENDENT, ROUGH, STORMS, Phase, stopped_after
from reports.fold.windows import Results
from reports.format import NS_PER_MS
from reports.gates.thresholds import Threshold, parse_gates
from reports.histogram.buckets import compact
from reports.histogram.codec import decoded, encoded_ns
from reports.summary.blocks import BlockSeries
from swarm.output.early_stop import CERTAIN, chance_of, is_certain, look_at, unlucky, variance

FAILING = Results(failure_kinds=Counter(timeout=200))


def threshold(require: str, *more: str) -> Threshold:
    lines = "\n".join(["[[threshold]]", f"require = '{require}'", *more])
    (found,) = parse_gates(lines, "t").thresholds
    return found


@pytest.mark.parametrize(
    ("after_s", "elapsed_s", "look"),
    [(0, 4, 0), (0, 5, 1), (0, 9, 1), (0, 10, 2), (2, 5, 1), (12, 11, 0), (12, 12, 1), (12, 22, 3)],
)
def test_looks_are_five_seconds_apart(after_s: int, elapsed_s: int, look: int) -> None:
    assert look_at(threshold("latency_p99_ms <= 9", f"abort_after_s = {after_s}"), elapsed_s) == look


def test_all_looks_at_all_runs_share_one_chance() -> None:
    spent = 20 * sum(chance_of(look, 20) for look in range(1, 20_000))
    assert 0.999 * CERTAIN < spent < CERTAIN


def test_the_mean_of_like_seconds_varies_as_simulated() -> None:
    random, values = np.random.default_rng(1), np.empty((20_000, 10))
    values[:, 0] = random.standard_normal(20_000)
    for at in range(1, 10):
        values[:, at] = 0.8 * values[:, at - 1] + 0.6 * random.standard_normal(20_000)
    assert variance(10) == pytest.approx(values.mean(axis=1).var(), rel=0.03)
    assert variance(1) == pytest.approx(1)


def test_the_longer_it_lasts_the_less_luck_explains() -> None:
    of_times = [unlucky(threshold("latency_p99_ms <= 100"), n, 1e-6).require.bound for n in (5, 20, 600)]
    assert of_times == pytest.approx([183, 153, 109], abs=1)
    of_failures = [unlucky(threshold("failure_ratio <= 0.01"), n, 1e-6).require.bound for n in (5, 20, 600)]
    assert of_failures == pytest.approx([0.366, 0.145, 0.018], abs=0.001)


def test_what_is_tolerated_is_no_broken_bound() -> None:
    found = unlucky(threshold("latency_p99_ms <= 100", "least_effect = 1"), 600, 1e-6)
    assert (found.require.bound, found.tolerated) == (200, 200)


def test_a_short_stall_in_a_long_phase_is_no_broken_bound() -> None:
    bound = threshold("failure_ratio <= 0.01")

    def certain(failing_s: int) -> bool:
        blocks = [Results(ok=200)] * 100 + [FAILING] * failing_s
        return is_certain(bound, BlockSeries(blocks, np.zeros(len(blocks), np.int64)), 1, 1e-6)

    assert [certain(failing_s) for failing_s in (3, 10, 90)] == [False, False, True]


def test_failures_of_few_seconds_are_not_certain() -> None:
    bound = threshold("failure_ratio <= 0.01")
    blocks = [FAILING] * 5

    def certain(count: int) -> bool:
        return is_certain(bound, BlockSeries(blocks[:count], np.zeros(count, np.int64)), 1, 1e-6)

    assert (certain(4), certain(5)) == (False, True)


@pytest.mark.parametrize(
    ("require", "failed", "late", "least"),
    [
        ("failure_ratio <= 0.01", 45, 0, -6.5),
        ("latency_p95_ms <= 10", 0, 12, -3.98),
        ("latency_p95_ms <= 10", 45, 0, -1.62),
    ],
)
def test_the_least_chance_at_which_it_is_certain(require: str, failed: int, late: int, least: float) -> None:
    fast, slow = (decoded(encoded_ns([ms * NS_PER_MS])[0]) for ms in (5, 40))
    blocks = [
        Results(
            ok=200 - failed,
            failure_kinds=Counter(timeout=failed + at),
            histograms={"latency": compact([fast] * (200 - failed - late - at) + [slow] * (late + at))},
        )
        for at in range(0, 24, 3)
    ]
    series = BlockSeries(blocks, np.zeros(len(blocks), np.int64))
    exponents = np.arange(-12, -0.3, 0.02)
    at = bisect_left(exponents, True, key=lambda it: is_certain(threshold(require), series, 2, 10**it))
    assert exponents[at] == pytest.approx(least, abs=0.011)


@pytest.mark.parametrize("phase", [Phase(ROUGH, seconds=100), Phase(STORMS, seconds=100, fails=True)])
def test_simulated_phases_that_keep_their_bound_go_on(phase: Phase) -> None:
    assert {stopped_after(phase, seed) for seed in range(20)} == {float("inf")}


@pytest.mark.parametrize("phase", [Phase(ALIKE, 5, runs=100), Phase(INDEPENDENT, 100, runs=100, fails=True)])
def test_simulated_phases_that_are_plainly_bad_are_stopped_soon(phase: Phase) -> None:
    assert max(stopped_after(phase, seed) for seed in range(5)) <= 10
