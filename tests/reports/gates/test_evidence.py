"""Means against bounds: p-values of Student's t, intervals, repeats that would decide, and Holm's method."""

from math import exp, log

import pytest
from scipy.stats import t, ttest_1samp

from reports.gates.evidence import apart_of, fewest, of_ratio, of_values
from reports.stats.log_ratio import RESOLUTION
from reports.stats.paired import holm, mean_of
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


def test_studies_of_other_times_count_as_their_mean_which_the_baselines_predict() -> None:
    mean = apart_of([0.20, 0.30], [0.10, 0.12, 0.11])
    # the baseline's standard deviation is 0.01, and that of one more to their mean sqrt(4 / 3) of it
    assert (mean.middle, mean.error, mean.freedom) == (
        pytest.approx(0.14),
        pytest.approx(0.011547, rel=1e-5),
        2,
    )
    found = of_ratio(mean, 1.0, 1.05, at_most=True)
    # t = 12.1244; at 2 degrees of freedom its tail is (1 - t / sqrt(2 + t * t)) / 2, and 4.30265 is 97.5 %
    assert found.p_broken == pytest.approx(0.003367, rel=1e-3)
    half = 4.30265 * 0.011547
    assert (log(found.low), log(found.high)) == (
        pytest.approx(0.14 - half, abs=1e-5),
        pytest.approx(0.14 + half, abs=1e-5),
    )


def test_more_studies_made_at_once_say_nothing_more() -> None:
    one, ten = apart_of([0.2], LOGS), apart_of([0.2] * 10, LOGS)
    assert (one.middle, one.error, one.freedom) == (pytest.approx(ten.middle), ten.error, ten.freedom)


def test_a_single_study_must_lie_beyond_what_the_others_predict() -> None:
    found = of_ratio(apart_of([0.30], LOGS), 1.0, 1.05, at_most=True)
    # of 0.10 to 0.16: mean 0.13, variance 0.0020 / 4; that of one more to their mean is 6 / 5 of it
    error = (0.0020 / 4 * 6 / 5) ** 0.5
    assert found.p_broken == pytest.approx(t.sf(0.17 / error, 4))
    assert found.p_kept == pytest.approx(t.cdf((0.17 - log(1.05)) / error, 4))
    half = t.ppf(0.975, 4) * error
    assert (log(found.low), log(found.high)) == (pytest.approx(0.17 - half), pytest.approx(0.17 + half))


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


def test_a_stricter_level_takes_more_repeats_to_show_that_a_bound_is_broken() -> None:
    found = of_ratio(mean_of([0.0, 0.3, 0.15]), 1.0, 1.05, at_most=True)
    assert found.p_broken > LEVEL
    once, among_many = found.more(LEVEL, LEVEL), found.more(LEVEL / 10, LEVEL)
    assert once is not None
    assert among_many is not None
    assert 1 <= once < among_many


def test_a_stricter_level_takes_more_repeats_to_show_that_a_bound_is_kept() -> None:
    found = of_ratio(mean_of([0.01, 0.03, 0.05]), 1.0, 1.05, at_most=True)
    once, of_many_looks = found.more(LEVEL, LEVEL), found.more(LEVEL, LEVEL / 8)
    assert once is not None
    assert of_many_looks is not None
    assert once < of_many_looks


def test_what_lies_on_the_tolerated_bound_is_never_decided() -> None:
    found = of_ratio(mean_of([log(1.05) - 0.1, log(1.05), log(1.05) + 0.1]), 1.0, 1.05, at_most=True)
    assert found.more(LEVEL, LEVEL) is None
    assert (fewest(lambda more: more >= 7), fewest(lambda more: more > 5_000)) == (7, None)
    assert fewest(lambda _: True) == 1


def test_holms_method_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
