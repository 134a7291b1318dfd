"""Means against bounds: p-values of Student's t, intervals, repeats that would decide, and Holm's method."""

from math import exp, log

import pytest
from scipy.stats import t, ttest_1samp

from reports.gates.evidence import apart_of, fewest, of_ratio, of_values
from reports.stats.log_ratio import RESOLUTION
from reports.stats.paired import mean_of
from reports.stats.shares import LEVEL

LOGS = [0.10, 0.13, 0.16, 0.12, 0.14]


def test_pairs_are_judged_by_students_t() -> None:
    found = of_ratio(mean_of(LOGS), 1.0, 1.05, at_most=True)
    assert found.value == pytest.approx(exp(0.13))
    interval = ttest_1samp(LOGS, 0).confidence_interval(0.95)
    assert (log(found.low), log(found.high)) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert found.p_broken == pytest.approx(ttest_1samp(LOGS, 0, alternative="greater").pvalue)
    assert found.p_kept == pytest.approx(ttest_1samp(LOGS, log(1.05), alternative="less").pvalue)
    assert (found.beyond, found.p_broken <= LEVEL, found.p_kept > LEVEL) == (True, True, True)


def test_a_lower_bound_is_judged_from_the_other_side() -> None:
    up = of_ratio(mean_of(LOGS), 1.0, 1.05, at_most=True)
    down = of_ratio(mean_of([-one for one in LOGS]), 1.0, 1 / 1.05, at_most=False)
    assert (down.p_broken, down.p_kept) == (pytest.approx(up.p_broken), pytest.approx(up.p_kept))
    assert (down.low, down.high) == (pytest.approx(1 / up.high), pytest.approx(1 / up.low))
    assert down.beyond


def test_of_studies_of_other_times_no_more_repeats_would_decide() -> None:
    values = [0.0, 0.3, 0.15]
    assert of_ratio(mean_of(values), 1.0, 1.05, at_most=True).more(LEVEL, LEVEL) is not None
    assert of_ratio(apart_of([0.15], values), 1.0, 1.05, at_most=True).more(LEVEL, LEVEL) is None


def test_studies_that_came_out_alike_are_no_sharper_than_three_digits() -> None:
    found = of_ratio(apart_of([0.0], [0.0, 0.0, 0.0]), 1.0, 1.05, at_most=True)
    assert (found.low, found.high) == (pytest.approx(1 / RESOLUTION), pytest.approx(RESOLUTION))


def test_what_is_tolerated_is_no_fail_however_sure() -> None:
    found = of_ratio(mean_of([0.030, 0.0301, 0.0299]), 1.0, 1.05, at_most=True)
    assert found.p_broken < 0.001
    assert found.p_kept <= LEVEL
    assert not found.beyond


def test_repeats_that_came_out_alike_are_no_sharper_than_three_digits() -> None:
    found = of_ratio(mean_of([0.0, 0.0, 0.0]), 1.0, 1.05, at_most=True)
    assert (found.low, found.high) == (pytest.approx(1 / RESOLUTION), pytest.approx(RESOLUTION))
    values = of_values(mean_of([100.0, 100.0, 100.0]), 100.0, 100.0, at_most=True)
    assert values.high == pytest.approx(100 * (1 + log(RESOLUTION)))
    assert min(values.p_broken, values.p_kept) > LEVEL
    zeros = of_values(mean_of([0.0, 0.0, 0.0]), 1.0, 1.0, at_most=True)
    assert zeros.value == 0.0
    assert zeros.p_kept <= LEVEL


def test_more_repeats_are_the_fewest_that_would_decide() -> None:
    def sure(runs: int) -> bool:
        spread = 0.02 / runs**0.5
        return bool(t.cdf((0.03 - log(1.05)) / spread, 2 * runs / 3) <= 0.025)

    # the sample's standard deviation is 0.02, its mean 0.03 below log(1.05)
    found = of_ratio(mean_of([0.01, 0.03, 0.05]), 1.0, 1.05, at_most=True)
    needed = next(runs for runs in range(4, 100) if sure(runs))
    assert found.p_kept > LEVEL
    assert found.more(LEVEL, LEVEL) == needed - 3


@pytest.mark.parametrize(
    ("logs", "levels"),
    [([0.0, 0.3, 0.15], (LEVEL / 10, LEVEL)), ([0.01, 0.03, 0.05], (LEVEL, LEVEL / 8))],
    ids=["broken", "kept"],
)
def test_a_stricter_level_takes_more_repeats(logs: list[float], levels: tuple[float, float]) -> None:
    found = of_ratio(mean_of(logs), 1.0, 1.05, at_most=True)
    assert min(found.p_broken, found.p_kept) > LEVEL
    once, stricter = found.more(LEVEL, LEVEL), found.more(*levels)
    assert once is not None
    assert stricter is not None
    assert 1 <= once < stricter


def test_what_lies_on_the_tolerated_bound_is_never_decided() -> None:
    found = of_ratio(mean_of([log(1.05) - 0.1, log(1.05), log(1.05) + 0.1]), 1.0, 1.05, at_most=True)
    assert found.more(LEVEL, LEVEL) is None
    assert (fewest(lambda more: more >= 7), fewest(lambda more: more > 5_000)) == (7, None)
    assert fewest(lambda _: True) == 1
