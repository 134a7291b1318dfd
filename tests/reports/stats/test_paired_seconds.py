"""Whether the interval of a ratio by paired seconds holds the true ratio, on simulated servers."""

from dataclasses import replace

import numpy as np
import pytest

from reports.histogram import codec
from reports.stats.paired_seconds import LEAST_PAIRS, SecondPairs
from reports.summary.blocks import Results, RunBlocks

TRUTH, RATE = 1.12, 50


def series(rng: np.random.Generator, seconds: int, alike: float, deviation: float) -> np.ndarray:
    """A first-order autoregressive series about 0."""
    steps = rng.normal(0, deviation * np.sqrt(1 - alike**2), seconds)
    steps[0] = rng.normal(0, deviation)
    for at in range(1, seconds):
        steps[at] += alike * steps[at - 1]
    return steps


def simulated(
    rng: np.random.Generator, seconds: int, runs: int, own_alike: float = 0.0, of_runs: float = 0.0
) -> SecondPairs:
    """A server that drifts by 30 % for both sides, of which one gets a tenth of exponential requests.

    Each side has noise of its own, whose neighbours are `own_alike`; runs differ by `of_runs`.
    """
    rows = []
    for run in range(runs):
        drift, off = series(rng, seconds, 0.95, 0.3), rng.normal(0, of_runs)
        own = [series(rng, seconds, own_alike, 0.05) for _ in range(2)]
        few = rng.binomial(RATE, 0.1, seconds)
        for at in np.flatnonzero(few):
            counts = RATE - few[at], few[at]
            levels = TRUTH * np.exp(drift[at] + own[0][at] + off), np.exp(drift[at] + own[1][at])
            means = [level * rng.gamma(count, 1 / count) for level, count in zip(levels, counts, strict=True)]
            rows.append((*means, counts[0] * counts[1] / RATE, run))
    over, under, weights, of = map(np.array, zip(*rows, strict=True))
    return SecondPairs(over, under, weights, of)


def width(low: float | None, high: float | None) -> float:
    assert low is not None
    assert high is not None
    return float(np.log(high / low))


@pytest.mark.parametrize(
    ("seconds", "runs", "more"),
    [
        (60, 1, {}),
        (60, 1, {"own_alike": 0.8}),
        (40, 3, {"own_alike": 0.8}),
        (40, 3, {"of_runs": 0.1}),
    ],
)
def test_the_interval_holds_the_true_ratio_in_about_95_of_100(
    seconds: int, runs: int, more: dict[str, float]
) -> None:
    rng = np.random.default_rng(5)
    found = [simulated(rng, seconds, runs, **more).ratio for _ in range(200)]
    covered = sum(width(one.low, one.high) > 0 and one.low <= TRUTH <= one.high for one in found)  # type: ignore[operator]
    assert 183 <= covered <= 199
    assert np.mean([np.log(one.ratio) for one in found]) == pytest.approx(np.log(TRUTH), abs=0.01)


def test_pairs_tell_more_than_the_two_sides_apart() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        pairs = simulated(rng, 120, 1)
        ones = np.ones(len(pairs))
        sides = (
            replace(pairs, under_ns=ones).ratio,
            replace(pairs, over_ns=pairs.under_ns, under_ns=ones).ratio,
        )
        apart = np.hypot(*(width(side.low, side.high) for side in sides))
        assert width(pairs.ratio.low, pairs.ratio.high) < apart


def blocks(width_s: int, each_ms: dict[int, list[int]]) -> RunBlocks:
    found = RunBlocks(width_s)
    for second, values in each_ms.items():
        told = codec.decoded(codec.encoded_ns([ms * 1_000_000 for ms in values])[0])
        found.merge(second, Results(ok=len(values), histograms={"latency": told}))
    return found


def test_pairs_are_of_the_same_seconds_weighted_by_how_many_both_have() -> None:
    one = blocks(1, {0: [10, 20], 1: [30], 2: [40]})
    other = blocks(1, {1: [60, 60, 60], 2: [80], 3: [5]})
    pairs = SecondPairs.of([(one, other), (blocks(1, {}), other), (one, one)])
    assert len(pairs) == 5
    assert pairs.width_s == 1
    assert pairs.over_ns / 1e6 == pytest.approx([30, 40, 15, 30, 40], rel=1e-3)
    assert pairs.under_ns / 1e6 == pytest.approx([60, 80, 15, 30, 40], rel=1e-3)
    assert pairs.weights.tolist() == [0.75, 0.5, 1.0, 0.5, 0.5]
    assert pairs.runs.tolist() == [0, 0, 1, 1, 1]


def test_blocks_of_several_seconds_are_paired_by_what_both_have_in_common() -> None:
    pairs = SecondPairs.of([(blocks(2, {0: [10], 3: [30]}), blocks(3, {1: [20], 4: [40], 6: [50]}))])
    assert (len(pairs), pairs.width_s) == (1, 6)
    assert (pairs.over_ns[0] / 1e6, pairs.under_ns[0] / 1e6) == pytest.approx((20, 30), rel=1e-3)


def test_of_too_few_there_is_a_ratio_but_no_interval() -> None:
    rng = np.random.default_rng(3)
    many = simulated(rng, 200, 1)
    few = SecondPairs(
        *(values[: LEAST_PAIRS - 1] for values in (many.over_ns, many.under_ns, many.weights, many.runs))
    )
    assert few.ratio.low is None
    assert few.ratio.ratio == pytest.approx(TRUTH, rel=0.2)
    assert many.ratio.low is not None
