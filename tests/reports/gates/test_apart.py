"""Ratios to a baseline that was not measured in turns with the study: each study counts once."""

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, stdev

import pytest
from scipy.stats import t

from reports.gates.compared import APART, FIX
from reports.gates.source import GateSource
from tests.reports.gates.rows import GRPC, a_run, a_source, repeated
from tests.reports.gates.test_compared import BASELINE, P95, one

ALIKE = (10.0, 10.05, 9.95)


def now(*ms: float, repeats: int = 5) -> GateSource:
    """Studies of this month with so many ms each."""
    return a_source(*(repeated(GRPC, P95, *[each] * repeats) for each in ms))


def then(*ms: Sequence[float]) -> GateSource:
    """Studies of the month before, with repeats of so many ms."""
    runs = [repeated(GRPC, P95, *each) for each in ms]
    return a_source(*runs, began=[f"2026-10-{day:02}" for day in range(1, 1 + len(ms))])


@pytest.mark.parametrize(
    ("grpc", "outcome"), [(10.0, "pass"), (8.0, "pass"), (11.5, "fail"), (10.45, "inconclusive")]
)
def test_studies_of_other_times_are_judged_by_how_much_they_differ(grpc: float, outcome: str) -> None:
    found = one(now(grpc), BASELINE, then(*([ms] * 5 for ms in ALIKE)))
    assert (found.outcome, found.runs, found.note) == (outcome, 1, APART)
    logs = [log(ms) for ms in ALIKE]
    half = t.ppf(0.975, 2) * stdev(logs) * sqrt(1 + 1 / 3)
    middle = log(grpc) - fmean(logs)
    assert [found.value, found.low, found.high] == pytest.approx(
        [exp(middle), exp(middle - half), exp(middle + half)]
    )


@pytest.mark.parametrize("grpc", [10.0, 11.5])
def test_a_baseline_that_differs_by_as_much_tells_nothing_and_repeats_would_not(grpc: float) -> None:
    found = one(now(grpc), BASELINE, then([10.0] * 5, [11.5] * 5, [8.7] * 5))
    assert (found.outcome, found.more_repeats, found.note) == ("inconclusive", None, APART)
    assert found.sentence.endswith(f"at most 1.00× is required (1.05× tolerated); {FIX}.")
    assert "measuring the two in turns" in FIX


def test_each_study_counts_once_however_many_repeats_it_has_and_however_many_are_of_now() -> None:
    before = then([10.0], [10.6, 10.6, 10.6], [9.5] * 20, [10.2])
    few, many, crowd = (
        one(made, BASELINE, before)
        for made in (now(11.2, repeats=2), now(11.2, repeats=20), now(*[11.2] * 10))
    )
    assert [verdict.runs for verdict in (few, many, crowd)] == [1, 1, 10]
    assert {verdict.outcome for verdict in (few, many, crowd)} == {"inconclusive"}
    # the mean of the studies' logs, not of the runs'
    assert few.value == pytest.approx(11.2 / (10.0 * 10.6 * 9.5 * 10.2) ** 0.25)
    assert (many.low, many.high) == (pytest.approx(few.low), pytest.approx(few.high))
    assert (crowd.low, crowd.high) == (pytest.approx(few.low), pytest.approx(few.high))


@pytest.mark.parametrize("count", [1, 2])
def test_a_baseline_of_fewer_than_three_studies_tells_nothing(count: int) -> None:
    found = one(now(20.0), BASELINE, then(*([ms] * 5 for ms in ALIKE[:count])))
    assert (found.outcome, found.value, found.runs, found.more_repeats) == ("inconclusive", None, count, None)
    assert found.sentence == (
        f"{GRPC}: the two were not measured in turns, and how much the machine changes from one time to "
        "another is not known: measure them in turns, or make the baseline of 3 studies or more."
    )


def test_a_study_of_the_baseline_without_a_run_that_counts_is_none() -> None:
    spoilt = [a_run(GRPC, at, "client-bound", **{P95: 10.0}) for at in (1, 2, 3)]
    before = a_source(*(repeated(GRPC, P95, ms) for ms in ALIKE[:2]), spoilt, began=["a", "b", "c"])
    found = one(now(10.0), BASELINE, before)
    assert found.outcome == "inconclusive"
    assert "make the baseline of 3 studies or more" in found.sentence
