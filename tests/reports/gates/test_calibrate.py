"""Repeats of one thing: how far they are apart, how often gates fail them, and what pairs can show."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.special import nctdtr, stdtrit

from reports.gates.calibrate import (
    MOST_FLIPS,
    Alike,
    alarms,
    alike,
    detectable,
    pairs_for,
    pairs_to_pass,
    passable,
)
from reports.stats.shares import LEVEL
from tests.reports.gates.rows import HTTP as CELL
from tests.reports.gates.rows import Run, a_run, a_source, repeated

COLUMN = "latency_p50_ms"


def one(*differences: float, cell: str = CELL, base: float = 3.0) -> Alike:
    """Pairs with such differences, each pair with its own drift."""
    logs = [base + 0.5 * number + part * way for number, way in enumerate(differences) for part in (0, 1)]
    return Alike(cell, COLUMN, tuple(logs))


def noisy(pairs: int, spread: float = 0.03, seed: int = 1, cell: str = CELL) -> Alike:
    """Pairs from a normal distribution."""
    return one(*np.random.default_rng(seed).normal(0, spread, pairs).tolist(), cell=cell)


def logs_of(*runs: Run) -> Alike:
    (found,) = alike(a_source(runs), [CELL], [COLUMN])
    return found


def test_neighbours_are_pairs_and_the_odd_one_is_left_over() -> None:
    found = logs_of(*repeated(CELL, COLUMN, 0.10, 0.11, 0.12, 0.15, 0.20))
    assert found.differences == pytest.approx([log(11 / 10), log(15 / 12)])
    assert (found.pairs, len(found.logs)) == (2, 5)


@pytest.mark.parametrize(
    ("codes", "told", "said"),
    [
        (["client-bound"], {COLUMN: 99.0}, "1 run left out (client-bound)"),
        ([], {COLUMN: 0.0}, ""),
        ([], {COLUMN: 9.0, "requests": 19}, "1 run left out (fewer than 20 results, measure longer: --"),
    ],
)
def test_runs_that_do_not_count_are_left_out_and_the_next_ones_are_neighbours(
    codes: list[str], told: dict[str, float], said: str
) -> None:
    first, *others = repeated(CELL, COLUMN, 10, 11, 12, 13)
    found = logs_of(first, a_run(CELL, 5, *codes, **told), *others)
    assert [round(exp(value)) for value in found.logs] == [10, 11, 12, 13]
    assert found.left_out.startswith(said)
    assert bool(found.left_out) is bool(said)


def test_pairs_are_free_of_drift() -> None:
    found = one(0.02, -0.02, 0.02, -0.02)
    assert found.of_a_pair == pytest.approx(0.02)
    assert found.within == pytest.approx(0.02 / sqrt(2))
    assert found.spread**2 == pytest.approx(found.within**2 + found.drift**2)
    assert found.drift > 0.5


def test_drift_is_never_negative() -> None:
    assert Alike(CELL, COLUMN, (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)).drift == 0


def test_the_doubt_shrinks_with_the_pairs() -> None:
    assert one(*[0.01] * 10).doubt == pytest.approx(1.5931, abs=1e-4)
    assert one(*[0.01] * 100).doubt == pytest.approx(1.1327, abs=1e-4)


def test_all_flips_of_equal_differences_alarm_in_the_one_where_all_are_slower() -> None:
    (alone,), together = alarms([one(*[0.06] * 5)], 0.05)
    assert (alone.any_effect, alone.least_effect) == (1 / 32, 1 / 32)
    assert together == alone
    # of 13, it also does where up to three have the other sign: 1 + 13 + 78 + 286 flips
    (many,), _ = alarms([one(*[0.06] * 13)], 0.0)
    assert many.any_effect == 378 / 2**13


def test_a_sure_change_below_the_least_effect_is_no_alarm() -> None:
    (alone,), together = alarms([one(0.02, 0.02, 0.02, 0.02)], 0.05)
    assert (alone.any_effect, alone.least_effect) == (1 / 16, 0)
    assert together == alone


def test_a_large_change_that_is_not_sure_among_others_is_no_alarm_of_all() -> None:
    # alone it is sure at 2 %, which is not within half of 2.5 %; one pair has no sign to flip
    (_, alone), together = alarms([one(0, 0, 0, 0, 0), one(0.0, 0.1, 0.1, 0.1, 0.2)], 0.05)
    assert (alone.any_effect, alone.least_effect) == (2 / 32, 2 / 32)
    assert (together.any_effect, together.least_effect) == (0, 0)
    # beside a sure small change, in the same flip, it is none either
    _, together = alarms([one(*[0.02] * 5), *[one(0.0, 0.1, 0.1, 0.1, 0.2)] * 2], 0.05)
    assert (together.any_effect, together.least_effect) == (1 / 32, 0)


def test_alarms_are_as_rare_as_the_level_says() -> None:
    cells = [noisy(20, seed=seed, cell=f"onnx-http/b1/c{seed}") for seed in range(1, 11)]
    each, together = alarms(cells, 0.05)
    assert [alone.any_effect for alone in each] == pytest.approx([LEVEL] * 10, abs=0.008)
    assert 0.01 < together.any_effect <= 0.035
    assert together.least_effect == 0
    again = alarms(cells, 0.05)
    assert (each, together) == again
    assert MOST_FLIPS == 10_000


def test_cells_may_have_different_numbers_of_pairs() -> None:
    each, _ = alarms([noisy(4), noisy(6, seed=2)], 0.0)
    assert len(each) == 2


def test_repeats_that_came_out_alike_are_no_alarm() -> None:
    (alone,), _ = alarms([one(0, 0, 0)], 0.0)
    assert alone.any_effect == 0


@pytest.mark.parametrize(("pairs", "cells", "power"), [(3, 1, 0.8), (5, 10, 0.95), (20, 35, 0.8)])
def test_what_is_detectable_is_caught_so_often(pairs: int, cells: int, power: float) -> None:
    spread = 0.08
    effect = log(1 + detectable(spread, pairs, cells, power, 0.0))
    critical = stdtrit(pairs - 1, 1 - LEVEL / cells)
    caught = 1 - nctdtr(pairs - 1, effect * sqrt(pairs) / spread, critical)
    assert caught == pytest.approx(power, abs=1e-4)


def test_nothing_below_the_least_effect_is_detectable() -> None:
    # of many quiet pairs the estimate need only be beyond it: 1.644854 and 0.841621 standard errors
    found = [detectable(0.01, 100, 1, power, 0.05) for power in (0.95, 0.8)]
    assert found == pytest.approx([1.05 * exp(0.001644854) - 1, 1.05 * exp(0.000841621) - 1])
    assert detectable(0.0, 10, 10, 0.95, 0.05) == pytest.approx(0.05)


def test_what_is_detectable_is_what_a_simulation_catches() -> None:
    spread, pairs, cells, least = 0.1, 10, 10, 0.05
    effect = detectable(spread, pairs, cells, 0.8, least)
    logs = np.random.default_rng(1).normal(log(1 + effect), spread, (20_000, pairs))
    middles, errors = logs.mean(axis=1), logs.std(axis=1, ddof=1) / sqrt(pairs)
    shown = middles / errors >= stdtrit(pairs - 1, 1 - LEVEL / cells)
    assert (shown & (middles > log(1 + least))).mean() == pytest.approx(0.8, abs=0.01)


def test_more_noise_and_smaller_changes_take_more_pairs() -> None:
    taken = [pairs_for(change, 0.06, 10) for change in (0.05, 0.10, 0.15)]
    assert taken == [34, 12, 8]
    assert [pairs_for(0.1, 0.06, cells) for cells in (1, 10)] == [8, 12]
    assert pairs_for(0.05, 2.0, 10) is None
    assert pairs_for(0.15, 0.0, 10) == 3


def test_what_did_not_change_passes_with_such_a_least_effect() -> None:
    assert passable(0.0, 10) == 0
    least = passable(0.08, 10)
    needed = pairs_to_pass(0.08, least)
    assert needed == min(pairs for pairs in range(3, 11) if passable(0.08, pairs) <= least)
    passed, less = (
        1 - nctdtr(9, log(1 + effect) * sqrt(10) / 0.08, stdtrit(9, 1 - LEVEL))
        for effect in (least, least - 0.01)
    )
    assert less < 0.95 <= passed
    assert pairs_to_pass(5.0, 0.05) is None
