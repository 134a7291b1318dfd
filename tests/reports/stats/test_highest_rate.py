"""Where the highest rate lies, from runs that met a bound or did not."""

from math import inf

import pytest

from reports.stats.highest_rate import RateTried, asks_again, confirmations, highest_rate, interval_said, told

DOUBLED = [RateTried(rate, True) for rate in (8, 16, 32, 64)]
CHANCE = [RateTried(rate, met) for rate in (80, 90, 110, 125) for met in (True, False, rate <= 100)]


def judged(*rates: float) -> list[RateTried]:
    """Runs of a server that meets the bound up to 100 a second."""
    return [RateTried(rate, rate <= 100) for rate in rates]


@pytest.mark.parametrize(
    ("tried", "quarter", "median", "low", "high"),
    [
        ([RateTried(8, False)], 4.332, 5.355, 0, 12.10),
        ([*DOUBLED, RateTried(128, False)], 72.26, 88.73, 44.79, 195.1),
        ([*DOUBLED, *[RateTried(128, False)] * 2, RateTried(8, False)], 69.90, 84.34, 36.81, 132.4),
        ([RateTried(rate, rate != 8) for rate in (8, 4, 9, 16)], 13.44, 19.41, 6.108, inf),
        (CHANCE, 78.70, 92.26, 52.23, 151.4),
        ([*DOUBLED, *judged(128, 70, 80, 90, 95, 98, 102, 105, 110, 115, 120)], 96.33, 98.35, 86.76, 105.1),
    ],
    ids=["a miss", "one above", "two above, one below", "below those that met it", "chance", "many"],
)  # fmt: skip
def test_where_it_lies_is_what_the_model_says(
    *, tried: list[RateTried], quarter: float, median: float, low: float, high: float
) -> None:
    """More runs make it surer, and verdicts that contradict each other leave it open."""
    found = highest_rate(tried)
    assert (found.at(0.25), found.median, *found.interval) == pytest.approx(
        (quarter, median, low, high), rel=1e-3
    )
    assert found.half_width == pytest.approx((high / low) ** 0.5 - 1 if low else inf, rel=2e-3)


def test_one_wrong_verdict_does_not_decide() -> None:
    right = judged(*(50, 60, 70, 130, 150, 180) * 2)
    assert 70 < highest_rate([*right, RateTried(60, False)]).median < 115


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((7, 9), "7.0–9.0/s"),
        ((7, inf), "7.00/s or more"),
        ((0, 9.46), "9.46/s or less"),
        ((0, inf), "not known"),
    ],
)
def test_an_interval_is_told_by_the_ends_that_it_has(ends: tuple[float, float], said: str) -> None:
    assert interval_said(8, *ends, "/s") == said


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
