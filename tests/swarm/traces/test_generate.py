"""Generated traces: their rates and bursts as asked, the same for the same seed."""

from collections import Counter
from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from swarm.traces.generate import Times, dispersion, diurnal, mmpp, per_second, poisson, with_batches
from users.load.mix import BLOCK

SECONDS = 2_000
MAKERS: dict[str, Callable[[int], Times]] = {
    "poisson": lambda seed: poisson(50, SECONDS, seed),
    "mmpp": lambda seed: mmpp(20, 200, 8, 2, SECONDS, seed),
    "diurnal": lambda seed: diurnal(50, 0.8, SECONDS, seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_times_rise_within_the_trace_and_are_those_of_the_seed(name: str) -> None:
    times_s, again, other = (MAKERS[name](seed) for seed in (1, 1, 2))
    assert (np.diff(times_s) >= 0).all()
    assert times_s[0] >= 0
    assert times_s[-1] < SECONDS
    assert times_s.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_poisson_has_its_rate_and_the_dispersion_of_chance(seed: int) -> None:
    times_s = poisson(50, SECONDS, seed)
    assert abs(len(times_s) - 50 * SECONDS) < 4 * sqrt(50 * SECONDS)
    # Of n seconds the index varies by sqrt(2 / (n - 1)).
    assert dispersion(times_s, SECONDS) == pytest.approx(1, abs=4 * sqrt(2 / (SECONDS - 1)))
    gaps = np.diff(times_s)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)


def test_mmpp_has_both_rates_for_their_shares_of_the_time() -> None:
    times_s = mmpp(20, 200, 8, 2, 50_000, 3)
    counts = per_second(times_s, 50_000)
    assert len(times_s) / 50_000 == pytest.approx((20 * 8 + 200 * 2) / 10, rel=0.05)
    # Its asymptotic index: 1 + 2 (difference of rates)² × product of shares × relaxation time / mean rate.
    limit = 1 + 2 * 180**2 * 0.8 * 0.2 * (8 * 2 / 10) / 56
    found = dispersion(times_s, 50_000)
    assert found is not None
    assert 20 < found < limit
    assert np.percentile(counts, 40) == pytest.approx(20, abs=2)
    assert np.percentile(counts, 95) == pytest.approx(200, rel=0.1)


def test_mmpp_may_be_silent_between_bursts() -> None:
    counts = per_second(mmpp(0, 100, 30, 3, 3_000, 1), 3_000)
    assert 0.6 < (counts == 0).mean() < 0.97


def test_a_day_is_low_at_both_ends_and_high_in_the_middle() -> None:
    times_s = diurnal(50, 0.8, SECONDS, 4)
    counts = per_second(times_s, SECONDS)
    assert len(times_s) / SECONDS == pytest.approx(50, rel=0.02)
    for place, rate in (
        (0, 10),
        (SECONDS // 4, 50),
        (SECONDS // 2, 90),
        (SECONDS * 3 // 4, 50),
        (SECONDS - 40, 10),
    ):
        around = counts[max(0, place - 20) : place + 40]
        assert around.mean() == pytest.approx(rate, abs=6)


def test_items_are_in_the_shares_of_a_mix() -> None:
    trace = with_batches(poisson(50, SECONDS, 1)[: 10 * BLOCK], "1:0.7,4:0.2,16:0.1", 5)
    assert Counter(trace.items.tolist()) == {1: 7_000, 4: 2_000, 16: 1_000}
    assert set(with_batches(np.array([0.5]), "", 5).items.tolist()) == {1}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: with_batches(poisson(1e-9, 1, 0), "", 0), "no request came in this time; give a higher"),
        (lambda: poisson(1e5, 1e3, 0), "about 100,000,000 requests would come, and a trace has at most"),
        (lambda: mmpp(1, 2, 1e-9, 1e-9, 60, 0), "the states change too often; give them longer times"),
        (lambda: with_batches(np.ones(1), "1:2", 0), "give the shares of all requests, which add up to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_made(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_dispersion_of_few_seconds_is_not_known() -> None:
    assert dispersion(np.array([0.1, 0.2]), 1.5) is None
    assert dispersion(np.array([0.5, 1.5, 2.5]), 3) == 0
