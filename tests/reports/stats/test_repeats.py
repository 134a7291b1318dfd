"""What repeats come to together, which of them count, and what is said where there are too few."""

from dataclasses import replace
from typing import Any

import pytest

from reports.caveat import Caveat
from reports.fold.server_facts import Serving
from reports.stats import failures, figures, repeats
from reports.stats.conditions import condition
from reports.stats.figures import images_per_s as rate
from reports.stats.percentiles import behind, mean_over
from reports.stats.repeats import Spread
from reports.summary.summary import Summary
from tests.reports.limit_runs import BEGUN
from tests.reports.parts import changed

MS = 1e6
LOST, FEW, DELAY = (Caveat(code, "", "") for code in ("worker-lost", "few-samples", "batching-delay"))
CONFIRM = "rerun with --repeats 5 to confirm"


def run(repeat: int = 1, images_per_s: float | None = None, *caveats: Caveat, **known: Any) -> Summary:
    told = {"requests": 100, "failures": 0} | known
    return changed(replace(BEGUN, repeat=repeat, caveats=caveats), images_per_s=images_per_s, **told)


def test_figures_rest_on_repeats_that_have_them_and_are_not_invalidated_or_on_all_where_each_is() -> None:
    known = [run(1, 100.0), run(2, 250.0, FEW, LOST), run(3, 400.0, FEW), run(4), run(5, 9.0, requests=0)]
    lost, zero, none = [run(1, 100.0, LOST), run(2, 400.0, LOST)], [run(1, 0.0), run(2, 30.0)], [run(4)]
    told = [(known, 200, [100, 400], 250), (lost, 200, [100, 400], 250), (zero, 15, [0, 30], 15)]
    for runs, mean, values, middle in told:
        found = mean_over(runs, rate)
        assert found is not None
        assert (found.value, found.results, figures.rate(runs)) == (pytest.approx(mean), 200, found.value)
        assert (found.low is None, found.high is None) == (runs is zero, runs is zero)
        assert (repeats.values(runs, rate), repeats.typical(runs, rate)) == (values, middle)
    assert [repeats.by_repeat(runs, rate) for runs in (known, zero)] == [{1: 100, 3: 400}, {}]
    assert repeats.spread_of(known, rate) == Spread(250, 100, 400, 3)
    latency = run(6, None, latency_mean_ns=MS)
    assert behind([run(1, 5.0), latency], rate) == [run(1, 5.0)]
    assert behind([run(1, 5.0), latency], figures.p50_ms) == [latency], "however few results it has"
    assert list(repeats.taints(known)) == ["invalidated: worker-lost"]
    assert [find(none, rate) for find in (mean_over, repeats.typical, repeats.spread_of)] == [None] * 3
    assert (repeats.values(none, rate), figures.rate(none)) == ([], 0)


def test_the_spread_of_a_ratio_reaches_from_its_least_to_its_most() -> None:
    top, bottom = Spread.of([30.0, 20.0, 90.0]), Spread.of([10.0, 5.0])
    assert (top, bottom) == (Spread(30, 20, 90, 3), Spread(7.5, 5, 10, 2))
    assert repeats.over(top, bottom) == Spread(4, 2, 18, 2)
    assert repeats.over(top, Spread.of([0.0, 5.0])) is None
    assert bottom.scaled(2) == Spread(15, 10, 20, 2)
    assert (str(Spread.of([24.1, 24.0, 24.3])), str(Spread.of([24.12]))) == ("24.1 (24.0–24.3)", "24.1")


@pytest.mark.parametrize(
    ("counts", "said", "hedge"),
    [
        ([1, 1], "unconfirmed: one run per cell; ", "with one run behind a figure, this may be chance; "),
        (
            [1, 3],
            "unconfirmed where a cell has one run; ",
            "with one run behind a figure, this may be chance; ",
        ),
        ([2, 3], *["with fewer than 3 runs per cell, differences may be chance"] * 2),
        ([3, 5], "", ""),
    ],
)
def test_what_few_runs_leave_open_is_said(counts: list[int], said: str, hedge: str) -> None:
    confirm = CONFIRM if 1 in counts else ""
    assert (repeats.scarcity(counts), repeats.hedge(min(counts))) == (said + confirm, hedge + confirm)


def test_why_there_is_no_number_is_said() -> None:
    never, failed = (replace(run(requests=0), status=status) for status in ("not-run", "failed"))
    for runs, said in (
        ([], "not in this study's plan"),
        ([never, never], "not run"),
        ([never, run()], "not stated by the server"),
        ([never, run(requests=3, failures=3)], "no request succeeded"),
        (
            [failed, replace(failed, status="aborted"), run(requests=0)],
            "no request succeeded (aborted, failed)",
        ),
    ):
        assert repeats.absence(runs) == said


def test_a_batching_delay_is_paid_only_where_a_caveat_says_so() -> None:
    waits = replace(run(1, 5.0, DELAY), serving=Serving(batching_delay_ns=2_500_000))
    said = "a lone request pays the batching delay in full: --queue-delay-us 0 would save 2.5 ms"
    runs = [waits, replace(waits, caveats=(FEW,)), replace(waits, serving=None)]
    assert list(repeats.delays_paid(runs)) == [said]


def test_the_fastest_cell_is_a_sound_one_where_there_is_any() -> None:
    cells = {"slow": [50.0, 60.0], "uneven": [10.0, 1_000.0], "fast": [200.0, 200.0]}
    runs = [
        replace(run(at, each), cell=cell) for cell, all_of in cells.items() for at, each in enumerate(all_of)
    ]
    for lost, fastest in ((set[str](), "fast"), ({"fast"}, "uneven"), ({*cells}, "fast")):
        marked = [replace(one, caveats=(LOST,) if one.cell in lost else ()) for one in runs]
        assert {one.cell for one in figures.fastest_cell(marked)} == {fastest}
    assert figures.fastest_cell([run(1), run(1, 5.0, requests=0)]) == []
    assert list(repeats.by_cell(runs)) == [*cells]
    assert repeats.ranked({"b": 2, "a": 2, "c": 9}) == [("c", 9), ("a", 2), ("b", 2)]
    best, half = ([run(at, by * each) for at, each in enumerate((99.0, 100.0, 101.0))] for by in (1, 0.5))
    assert figures.told_from_best(best, [half, best, half[:2]]) == [True, False, None]


def test_figures_are_in_milliseconds_and_some_hold_waits() -> None:
    known = run(1, None, latency_mean_ns=10 * MS, latency_p95_ns=30 * MS, server_compute_ns=4 * MS)
    shown = (figures.mean_ms, figures.p95_ms, figures.compute_ms)
    assert [[value(one) for value in shown] for one in (known, run())] == [[10, 30, 4], [None] * 3]
    assert figures.mean_ms(run(1, None, latency_mean_ns=0.0)) == 0
    waiting = (*shown, rate, figures.in_ms("service.p50_ns"), figures.in_ms("server.queue_ns"))
    assert [*map(figures.holds_waits, waiting)] == [True, True, False, True, True, False]


def test_the_time_of_failures_is_apart_from_that_of_timeouts_and_of_successes() -> None:
    kinds = [{"timeout": 1, "refused": 3}, {"refused": 1}, {"timeout": 3}]
    times = [
        {"failed_mean_ns": 2 * MS, "timeout_mean_ns": 500 * MS},
        {"failed_mean_ns": 6 * MS, "latency_mean_ns": 20 * MS},
    ]
    times += [{"timeout_mean_ns": 900 * MS, "latency_mean_ns": 10 * MS}]
    runs = [
        run(failures=sum(kind.values()), failure_kinds=kind, **told)
        for kind, told in zip(kinds, times, strict=True)
    ]
    none = [run(requests=None, failures=None)]
    assert failures.failed_ns(runs + none, timed_out=False) == pytest.approx((3 * 2 + 6) / 4 * MS)
    assert failures.failed_ns(runs + none, timed_out=True) == pytest.approx((500 + 3 * 900) / 4 * MS)
    assert failures.succeeded_ns(runs + none) == pytest.approx((99 * 20 + 97 * 10) / 196 * MS)
    assert (failures.failed_ns(none, timed_out=False), failures.succeeded_ns(none)) == (None, None)
    assert (failures.failed_share(runs + none), failures.failed_share(none), failures.ranks(none)) == (
        8 / 300,
        0,
        True,
    )


def test_three_cells_that_are_not_ranked_are_named_those_with_most_failures_first() -> None:
    runs = [replace(run(failures=failed), cell=f"c{failed}") for failed in (1, 2, 9, 5, 3, 4)]
    named = "c9 (9.00 %), c5 (5.00 %), c4 (4.00 %) and 2 more"
    assert failures.unranked(runs) == f"Not ranked, since more than 1 % of the requests failed: {named}."
    assert failures.unranked(runs[:1]) == ""


def test_conditions_come_serial_first_then_by_load_level_and_batch() -> None:
    told = [
        ("closed", 1, 2),
        ("closed", 1, 8),
        ("closed", 4, 1),
        ("closed", 4, 8),
        ("closed", 16, 1),
        ("open", 0.5, 1),
        ("open", 1, 1),
    ]
    ordered = [condition(replace(run(), load=load, level=level, batch=batch)) for load, level, batch in told]
    assert sorted({*ordered}) == ordered
    said = ["batch 2, 1 user", "batch 8, 4 users", "batch 1, 0.5 requests/s"]
    assert [str(ordered[at]) for at in (0, 3, 5)] == said
