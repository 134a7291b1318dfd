"""Where the highest rate lies, from runs that met a bound or did not."""

from math import inf

import pytest

from reports.stats.highest_rate import RateTried, asks_again, confirmations, highest_rate, interval_said, told

DOUBLED = [RateTried(rate, True) for rate in (8, 16, 32, 64)]


def test_the_median_lies_between_a_rate_that_met_it_and_one_that_missed() -> None:
    found = highest_rate([*DOUBLED, RateTried(128, False)])
    assert 75 < found.median < 105
    low, high = found.interval
    assert 40 < low < 64
    assert 128 < high < 210
    assert found.at(0.25) < found.median < found.at(0.75)


def test_more_runs_make_it_surer() -> None:
    few = highest_rate([*DOUBLED, RateTried(128, False)])
    more = [RateTried(rate, rate <= 100) for rate in (70, 80, 90, 95, 98, 102, 105, 110, 115, 120)]
    many = highest_rate([*DOUBLED, RateTried(128, False), *more])
    assert many.median == pytest.approx(100, rel=0.05)
    assert many.half_width < few.half_width / 2


def test_verdicts_that_contradict_each_other_leave_it_open() -> None:
    """A sharp server has the same runs above and below as one where chance decides, and another interval."""
    sharp = [RateTried(rate, rate <= 100) for rate in (80, 90, 110, 125) * 3]
    chance = [RateTried(rate, met) for rate in (80, 90, 110, 125) for met in (True, False, rate <= 100)]
    assert highest_rate(chance).half_width > 3 * highest_rate(sharp).half_width


def test_one_wrong_verdict_does_not_decide() -> None:
    right = [RateTried(rate, rate <= 100) for rate in (50, 60, 70, 130, 150, 180) * 2]
    assert 70 < highest_rate([*right, RateTried(60, False)]).median < 115


def test_a_rate_above_all_misses_leaves_it_open_above() -> None:
    """A single miss below rates that met the bound is no limit: no edge of the grid is shown as one."""
    found = highest_rate([RateTried(8, False), RateTried(4, True), RateTried(8, True), RateTried(16, True)])
    low, high = found.interval
    assert 4 < low < 8
    assert high == inf
    assert found.half_width == inf
    assert interval_said(16, low, high, "/s") == f"{low:.2f}/s or more"


def test_misses_above_a_rate_limit_it_on_both_sides() -> None:
    runs = [RateTried(8, False), RateTried(4, True), *DOUBLED, RateTried(128, False), RateTried(128, False)]
    low, high = highest_rate(runs).interval
    assert 32 < low < 64
    assert 100 < high < 200


def test_a_miss_alone_leaves_it_open_below() -> None:
    low, high = highest_rate([RateTried(8, False)]).interval
    assert low == 0
    assert high < 8 * 2.3
    assert interval_said(8, 0, 9.46) == "9.46 or less"
    assert interval_said(8, 0, inf) == "not known"
    assert interval_said(8, 7, 9, "/s") == "7.0–9.0/s"


@pytest.mark.parametrize(
    ("verdicts", "known", "again"),
    [
        ([None], [], True),
        ([None, True], [True], False),
        ([None, None], [False], False),
        ([True, None, None, None], [True, False], True),
        ([True, False], [True, False], False),
    ],
)
def test_a_run_that_tells_nothing_is_made_once_more(
    verdicts: list[bool | None], known: list[bool], again: bool
) -> None:
    tried = [RateTried(8, met) for met in verdicts]
    assert [run.met for run in told(tried)] == known
    assert asks_again(tried) is again


def test_two_at_different_rates_are_no_miss() -> None:
    tried = [RateTried(10, True), RateTried(83.5, None), RateTried(20, None)]
    assert told(tried) == [RateTried(10, True)]


def test_confirmations_are_those_since_the_last_miss() -> None:
    met, missed = RateTried(90, True, confirming=True), RateTried(95, False, confirming=True)
    assert confirmations([*DOUBLED, met]) == 1
    assert confirmations([met, missed, met, met]) == 2
    assert confirmations([met, missed]) == 0
    assert confirmations(DOUBLED) == 0
