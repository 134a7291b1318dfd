"""Ratios: of two ways within a study, and to a baseline that was measured in turns with it."""

from collections.abc import Sequence
from math import exp, log

import pytest
from scipy.stats import ttest_1samp

from reports.gates.compared import in_turns
from reports.gates.source import GateSource
from reports.gates.verdict import Verdict
from tests.reports.gates.book import require
from tests.reports.gates.rows import GRPC, HTTP, Run, a_run, a_source, repeated, said_of

P95 = "latency_p95_ms"
RATIO = require("onnx-grpc / onnx-http <= 1", of="'latency_p95_ms'")
BASELINE = require("latency_p95_ms / baseline <= 1", endpoint="'onnx-grpc'")
PAIR = f"{GRPC} / {HTTP}"
SWAY = (10.0, 13.0, 8.0, 11.0, 9.0)
OFF = (1.01, 0.99, 1.01, 0.99, 1.01)


def one(source: GateSource, text: str = RATIO, baseline: GateSource | None = None) -> Verdict:
    (verdict,) = said_of(source, text, baseline)
    return verdict


def swaying(grpc: float, column: str = P95, spoilt: Sequence[tuple[str, int]] = ()) -> list[Run]:
    """Repeats that go up and down by a third, both ways alike, so many times as high with gRPC."""
    return [
        a_run(cell, repeat, *["client-bound"] * ((cell, repeat) in spoilt), **{column: ms * times})
        for repeat, (ms, off) in enumerate(zip(SWAY, OFF, strict=True), 1)
        for cell, times in ((HTTP, 1.0), (GRPC, grpc * off))
    ]


@pytest.mark.parametrize(
    ("grpc", "outcome"), [(1.0, "pass"), (1.03, "pass"), (1.045, "inconclusive"), (1.15, "fail")]
)
def test_two_ways_are_compared_repeat_by_repeat(grpc: float, outcome: str) -> None:
    found = one(a_source(swaying(grpc)[::-1]))
    logs = [log(grpc * off) for off in OFF]
    interval = ttest_1samp(logs, 0).confidence_interval(0.95)
    assert (found.cell, found.outcome, found.runs, found.note) == (PAIR, outcome, 5, "")
    assert [found.value, found.low, found.high] == pytest.approx(
        [exp(sum(logs) / 5), exp(interval.low), exp(interval.high)]
    )


@pytest.mark.parametrize(("grpc", "outcome"), [(1.0, "pass"), (0.97, "pass"), (0.85, "fail"), (1.2, "pass")])
def test_of_rates_the_other_way_is_worse(grpc: float, outcome: str) -> None:
    text = require("onnx-grpc / onnx-http >= 1", of="'images_per_s'")
    assert one(a_source(swaying(grpc, "images_per_s")), text).outcome == outcome


def test_a_ratio_is_said_in_one_sentence() -> None:
    assert one(a_source(swaying(1.15))).sentence == (
        f"{PAIR}: ratio of latency_p95_ms 1.15× (95 % CI 1.14× to 1.17×), at most 1.00× is required "
        "(1.05× tolerated)."
    )


def test_repeats_are_paired_within_their_study_by_their_number() -> None:
    # the second study is three times as slow, and lacks one of gRPC's
    slower = [
        a_run(run.row.cell, int(run.row.numbers["repeat"]), **{P95: 3 * run.row.numbers[P95]})
        for run in swaying(1.0)
    ]
    found = one(a_source(swaying(1.0, spoilt=[(GRPC, 2)]), slower[:3] + slower[4:]))
    assert (found.outcome, found.runs, found.note) == ("pass", 8, f"of {GRPC}: 1 run left out (client-bound)")
    assert found.value == pytest.approx(1.0, abs=0.01)


def test_it_is_said_of_which_side_runs_were_left_out() -> None:
    spoilt = [(GRPC, 1), (HTTP, 1), (HTTP, 5)]
    assert one(a_source(swaying(1.0, spoilt=spoilt))).note == (
        f"of {GRPC}: 1 run left out (client-bound); of {HTTP}: 2 runs left out (client-bound)"
    )
    then = before(*swaying(1.0, spoilt=[(GRPC, 2)]))
    assert one(a_source(swaying(1.0, spoilt=spoilt)), BASELINE, then).note.endswith(
        f"; of {GRPC}: 1 run left out (client-bound); of the baseline's: 3 runs left out (client-bound)"
    )


def test_no_number_of_repeats_mends_a_side_of_which_no_run_counts() -> None:
    found = one(a_source(swaying(1.0, spoilt=[(GRPC, at) for at in range(1, 6)])))
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 0, None)
    assert found.sentence.endswith(f"no run of {GRPC} counts: 5 runs left out (client-bound).")


def test_fewer_than_three_pairs_are_inconclusive() -> None:
    found = one(a_source(swaying(1.0, spoilt=[(GRPC, 1), (GRPC, 2), (HTTP, 3)])))
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 2, 1)
    assert "2 repeats of both count, and a ratio takes 3; 1 more repeat would decide" in found.sentence
    assert one(a_source(swaying(1.0, spoilt=[(GRPC, 1), (HTTP, 3)]))).runs == 3


@pytest.mark.parametrize(
    ("http", "grpc", "side", "results", "more"),
    [
        (1_200, 4_000, HTTP, "4,800", 1),
        (2_000, 1_000, GRPC, "4,000", 1),
        (1_001, 1_249, GRPC, "4,996", 1),
    ],
)
def test_a_percentile_of_too_few_results_on_a_side_is_inconclusive(
    http: int, grpc: int, side: str, results: str, more: int
) -> None:
    sides = ((HTTP, http), (GRPC, grpc))
    runs = [
        run for cell, each in sides for run in repeated(cell, "latency_p99_ms", *[10.0] * 4, requests=each)
    ]
    found = one(a_source(runs), RATIO.replace("p95", "p99"))
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 4, more)
    assert f"{side}: {results} results, and latency_p99_ms takes 5,000" in found.sentence


def test_as_many_more_runs_are_told_as_the_side_that_lacks_most_takes() -> None:
    runs = [*repeated(GRPC, "latency_p999_ms", *[9.0] * 4), *repeated(HTTP, "latency_p999_ms", *[9.0] * 3)]
    found = one(a_source(runs), RATIO.replace("p95", "p999"))
    assert (found.runs, found.more_repeats) == (3, 2)


def test_a_value_of_zero_has_no_ratio() -> None:
    runs = swaying(1.0)
    zero = a_run(GRPC, 1, **{P95: 0.0})
    assert one(a_source([zero, *runs[:1], *runs[2:]])).note == (
        f"of {GRPC}: 1 run left out (latency_p95_ms is 0)"
    )
    found = one(a_source(swaying(0.0)))
    assert found.outcome == "inconclusive"
    assert f"no run of {GRPC} counts: 5 runs left out (latency_p95_ms is 0)" in found.sentence


def before(*runs: Run) -> GateSource:
    """A baseline of three alike studies."""
    return a_source(*[runs] * 3, began=["2026-10-01", "2026-10-02", "2026-10-03"])


def test_a_baseline_without_the_cell_or_of_another_image_size_never_passes() -> None:
    missing = one(a_source(swaying(1.0)), BASELINE, before(*repeated(HTTP, P95, 10, 10, 10)))
    assert (missing.outcome, missing.sentence) == ("inconclusive", f"{GRPC}: the baseline has no such cell.")
    now, smaller = (repeated(GRPC, P95, 10, 10, 10, request_bytes=size) for size in (602_112, 150_528))
    size = one(a_source(now), BASELINE, before(*smaller))
    assert size.outcome == "inconclusive"
    assert size.sentence == (
        f"{GRPC}: the conditions are not the baseline's: request_bytes (602,112 here, 150,528 in the "
        "baseline); may_differ of [baseline] can allow that."
    )
    allowed = f"{BASELINE}[baseline]\nmay_differ = ['request_*']\n"
    assert one(a_source(now), allowed, before(*smaller)).outcome == "pass"


def test_bounds_on_evidence_hold_for_the_baseline_too() -> None:
    evidence = require("requests >= 1000", level="1")
    then = before(*repeated(GRPC, P95, *[10.0] * 3, requests=999))
    found = next(it for it in said_of(a_source(swaying(1.0)), BASELINE + evidence, then) if it.ratio)
    assert found.outcome == "inconclusive"
    assert "no run of the baseline's counts: 9 runs left out (requests >= 1000 is not kept)" in found.sentence


def studies(minutes: Sequence[int], *ms: float, repeats: int = 2) -> GateSource:
    """One study for each minute, with so many ms of gRPC."""
    made = [repeated(GRPC, P95, *[each] * repeats) for each in ms]
    return a_source(*made, began=[f"2026-11-21T11:{minute:02}" for minute in minutes])


DRIFT = (10.0, 12.0, 15.0)


@pytest.mark.parametrize(
    ("now", "then", "turns"),
    [
        ([1, 10, 21], [0, 11, 20], [(0, 0), (1, 1), (2, 2)]),
        ([21, 1, 10], [0, 20, 11], [(1, 0), (2, 2), (0, 1)]),
        ([31, 40, 51], [0, 11, 20], []),
        ([1, 10], [0, 11], []),
        ([1, 10, 21, 30], [0, 11, 20], []),
        ([1, 2, 3], [0, 20, 30], []),
    ],
)
def test_turns_are_of_one_study_each(now: list[int], then: list[int], turns: list[tuple[int, int]]) -> None:
    sides = studies(now, *[10.0] * len(now)), studies(then, *[10.0] * len(then))
    assert in_turns(*sides) == turns
    assert in_turns(*reversed(sides)) == [turn[::-1] for turn in turns]


@pytest.mark.parametrize(("times", "outcome"), [(1.15, "fail"), (1.0, "pass"), (0.9, "pass")])
def test_the_ratio_of_turns_leaves_out_what_drifts(times: float, outcome: str) -> None:
    now, then = studies([1, 10, 21], *(ms * times for ms in DRIFT)), studies([0, 11, 20], *DRIFT)
    found = one(now, BASELINE, then)
    assert (found.outcome, found.runs, found.note) == (outcome, 3, "")
    assert found.value == pytest.approx(times)
    assert log(found.high or 0) - log(found.low or 0) < 0.01


def test_a_turn_without_a_run_that_counts_is_none() -> None:
    now = studies([1, 10, 21], *DRIFT)
    spoilt = a_source(
        *(repeated(GRPC, P95, ms, ms) for ms in DRIFT[:2]),
        [a_run(GRPC, 1, "client-bound", **{P95: 15.0})],
        began=["2026-11-21T11:00", "2026-11-21T11:11", "2026-11-21T11:20"],
    )
    found = one(now, BASELINE, spoilt)
    assert (found.outcome, found.runs, found.more_repeats) == ("inconclusive", 2, 1)
    assert "2 turns of both count, and a ratio takes 3" in found.sentence
