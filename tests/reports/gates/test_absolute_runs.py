"""Bounds on a column that are judged run by run: by the mean of repeats, or by the worst."""

import pytest
from scipy.stats import ttest_1samp

from reports.gates.require import GATED, JUDGED, JudgedBy
from tests.reports.gates.rows import HTTP, a_run, one, repeated, seconds_of

RATES = (1_140.0, 1_200.0, 1_260.0)


@pytest.mark.parametrize(
    ("bound", "outcome"), [(">= 900", "pass"), (">= 1560", "fail"), (">= 1230", "inconclusive")]
)
def test_repeats_are_judged_by_their_mean(bound: str, outcome: str) -> None:
    found = one(f"images_per_s {bound}", repeated(HTTP, "images_per_s", *RATES))
    interval = ttest_1samp(RATES, 0).confidence_interval(0.95)
    assert (found.outcome, found.value, found.runs) == (outcome, pytest.approx(1_200), 3)
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    other = one(f"images_per_s {bound.replace('>', '<')}", repeated(HTTP, "images_per_s", *RATES))
    assert other.outcome == {"pass": "fail", "fail": "pass"}.get(outcome, outcome)


def test_repeats_take_three() -> None:
    few = one("images_per_s >= 900", repeated(HTTP, "images_per_s", *RATES[:2]))
    assert (few.outcome, few.more_repeats) == ("inconclusive", 1)
    assert few.sentence.startswith(f"{HTTP}: 2 runs cannot tell how images_per_s varies; 1 more repeat would")


@pytest.mark.parametrize("column", [name for name in GATED if JUDGED[name] is JudgedBy.FACT])
@pytest.mark.parametrize(
    ("bound", "outcome", "worst"),
    [("<= 29", "fail", 30), ("<= 30", "pass", 30), (">= 20", "pass", 20), (">= 21", "fail", 20)],
)
def test_facts_are_judged_by_the_worst_run(column: str, bound: str, outcome: str, worst: float) -> None:
    found = one(f"{column} {bound}", repeated(HTTP, column, 25, 30, 20))
    assert (found.outcome, found.value, found.runs) == (outcome, worst, 3)
    assert f"{column} {found.unit.text(worst)} in the worst of 3 runs, at " in found.sentence


def test_a_single_run_is_no_worst_of_several() -> None:
    found = one("request_bytes >= 602113", repeated(HTTP, "request_bytes", 602_112))
    assert (found.outcome, "602,000 bytes, at least" in found.sentence) == ("fail", True)


@pytest.mark.parametrize("column", [name for name in GATED if JUDGED[name] is JudgedBy.EVIDENCE])
def test_evidence_that_lacks_is_inconclusive_and_never_a_fail(column: str) -> None:
    runs = repeated(HTTP, column, 5_000, 4_000, 6_000)
    found = one(f"{column} >= 4001", runs)
    assert (found.outcome, found.value, found.more_repeats) == ("inconclusive", 4_000, None)
    assert found.sentence.endswith(" is required, and a run without that shows nothing.")
    assert one(f"{column} <= 5999", runs).outcome == "inconclusive"
    assert (one(f"{column} >= 4000", runs).outcome, one(f"{column} <= 6000", runs).outcome) == (
        "pass",
        "pass",
    )


def test_what_is_tolerated_holds_for_facts_too() -> None:
    runs = repeated(HTTP, "request_bytes", 105)
    upper = [one("request_bytes <= 100", runs, least_effect=least).outcome for least in ("0", "0.04", "0.05")]
    lower = [one("request_bytes >= 110", runs, least_effect=least).outcome for least in ("0", "0.04", "0.05")]
    assert (upper, lower) == (["fail", "fail", "pass"], ["fail", "fail", "pass"])


def test_failures_of_a_run_of_which_nothing_succeeded_fail() -> None:
    found = one("failures <= 0", [seconds_of([10.0] * 6, each=0, failed=dict.fromkeys(range(6), 5))])
    assert (found.outcome, found.value, found.note) == ("fail", 30, "")


def test_results_of_short_runs_are_pooled_for_a_percentile() -> None:
    found = one("latency_p95_ms <= 13", [seconds_of([10.0] * 3, at, each=20) for at in range(1, 25)])
    assert (found.outcome, found.runs, found.note) == ("pass", 24, "")


def test_runs_that_do_not_count_make_nothing_worse() -> None:
    worse = a_run(HTTP, 4, "worker-lost", latency_max_ms=99, images_per_s=5)
    for text, column, values in (
        ("latency_max_ms <= 30", "latency_max_ms", (25, 30, 20)),
        ("images_per_s >= 900", "images_per_s", RATES),
    ):
        found = one(text, [*repeated(HTTP, column, *values), worse])
        assert (found.outcome, found.runs, found.note) == ("pass", 3, "1 run left out (worker-lost)")
