"""The search for the highest rate that keeps a bound."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reports.caveats.rate_bound import GoodputBound, RateBound
from reports.histogram.buckets import middles_ns
from reports.histogram.codec import decoded
from reports.ledger.ledger import tag_of
from reports.slo import Slo
from reports.stats.highest_rate import RateTried, confirmations, highest_rate, told
from reports.study.study import Study, load_study
from reports.topics.load.rate_search import find_bound, searches
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.rate_search import MOST_STEPS, SEARCHING_STEPS, RateSearch, RateStep, next_step
from swarm.plan.schedule import Outcome
from tests.reports.open_load import at_rate, searched
from users.endpoint import Endpoint

HTTP = Endpoint("a-http", "a", "http", "fp32", "h:1", "m")
BOUND = RateBound("p99", 100)
CELLS = [Cell(HTTP, batch, 8, 10, 3, "open", arrivals="constant", max_in_flight=5) for batch in (1, 4)]


def tried(meets: Callable[[float], bool | None], start: float = 8) -> list[RateTried]:
    """The runs of a search where `meets` says which rates keep the bound."""
    seen: list[RateTried] = []
    while step := next_step(seen, start):
        seen.append(RateTried(step.rate, meets(step.rate), step.confirming))
    return seen


def of_search(seen: list[RateTried]) -> list[float]:
    return [run.rate for run in seen if not run.confirming]


def test_it_doubles_then_tries_the_median_then_confirms_a_lower_rate() -> None:
    seen = tried(lambda rate: rate <= 100)
    assert of_search(seen)[:6] == [8, 16, 32, 64, 128, 128]
    assert 64 < of_search(seen)[6] < 128
    assert len(of_search(seen)) <= SEARCHING_STEPS
    assert [run.confirming for run in seen[-4:]] == [False, True, True, True]
    (answer,) = {run.rate for run in seen if run.confirming}
    assert 85 <= answer <= 100
    low, high = highest_rate(told(seen)).interval
    assert low <= 100 <= high < 1.5 * low


def test_a_start_that_is_too_high_is_halved() -> None:
    seen = tried(lambda rate: rate <= 1)
    assert of_search(seen)[:4] == [8, 4, 2, 1]
    assert 0.85 <= seen[-1].rate <= 1
    assert confirmations(told(seen)) == 3


def test_where_no_rate_keeps_the_bound_it_gives_up() -> None:
    seen = tried(lambda rate: False)
    assert min(of_search(seen)) == pytest.approx(0.125, abs=0.01)
    assert seen == [run for run in seen if not run.confirming]


def test_where_every_rate_keeps_it_none_is_confirmed() -> None:
    """The highest rate was not reached, whatever the last one was."""
    seen = tried(lambda rate: True)
    assert seen == [RateTried(8.0 * 2**power, True) for power in range(SEARCHING_STEPS)]


def test_a_client_that_can_send_no_more_ends_the_doubling() -> None:
    """Two runs at which the rate was missed are a limit, and the answer is below it."""
    seen = tried(lambda rate: True if rate <= 3_000 else None)
    assert max(of_search(seen)) == 4_096
    assert of_search(seen).count(4_096) == 2
    assert confirmations(told(seen)) == 3
    assert 2_500 <= seen[-1].rate <= 3_000


@pytest.mark.parametrize("spoilt", [1, 2, 3])
def test_first_runs_that_miss_for_another_reason_do_not_hold_the_search(spoilt: int) -> None:
    """The lowest miss of the descent is made once more, and the doubling goes on over those above."""
    runs = iter(range(MOST_STEPS))
    seen = tried(lambda rate: next(runs) >= spoilt and rate <= 100)
    assert 85 <= seen[-1].rate <= 100
    assert confirmations(told(seen)) == 3
    low, high = highest_rate(told(seen)).interval
    assert low <= 100 <= high < 200


def test_a_stall_ends_no_doubling() -> None:
    runs = iter(range(MOST_STEPS))
    seen = tried(lambda rate: next(runs) != 2 and rate <= 100)
    assert of_search(seen)[:6] == [8, 16, 32, 32, 64, 128]
    assert 85 <= seen[-1].rate <= 100


def test_a_miss_that_tells_nothing_twice_is_not_made_a_third_time() -> None:
    seen = tried(lambda rate: True if rate <= 8 else None)
    assert of_search(seen).count(16) == 2


def test_a_rate_that_a_confirming_run_missed_is_left_for_a_lower_one() -> None:
    found = tried(lambda rate: rate <= 100)
    until = found[: next(at for at, run in enumerate(found) if run.confirming)]
    first = next_step(until, 8)
    assert first is not None
    once_met = [*until, RateTried(first.rate, True, confirming=True)]
    assert next_step(once_met, 8) == first
    missed = [*once_met, RateTried(first.rate, False, confirming=True)]
    lower = next_step(missed, 8)
    assert lower is not None
    assert lower.confirming
    assert 0.7 * first.rate < lower.rate <= 0.95 * first.rate


def test_each_miss_while_confirming_asks_for_more_certainty() -> None:
    found = [RateTried(64, True), RateTried(128, False), RateTried(128, False)]
    for at, share in enumerate((0.25, 0.2, 0.15, 0.1, 0.05, 0.05)):
        known = [*found, *[RateTried(120, False, confirming=True)] * at]
        expected = float(f"{highest_rate(known).at(share):.3g}")
        assert expected < 0.95 * 120
        if at:
            assert next_step(known, 8) == RateStep(expected, confirming=True)


@pytest.mark.parametrize(
    ("runs", "met", "step"),
    [(21, 0, 60.8), (22, 0, None), (22, 1, 64), (23, 1, None), (23, 2, 64), (21, 3, None)],
)
def test_what_cannot_be_confirmed_any_more_is_not_begun(runs: int, met: int, step: float | None) -> None:
    """Of 24 runs, those that remain must be enough for three in a row."""
    before = [RateTried(200, True), RateTried(400, False)] * runs
    confirming = [RateTried(64, True, confirming=True)] * met or [RateTried(64, False, confirming=True)]
    found = next_step([*before[: runs - len(confirming)], *confirming], 8)
    assert (found and found.rate) == step
    assert found is None or found.confirming


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        ([RateTried(8, True)] * 22 + [RateTried(16, None)], RateStep(16)),
        ([RateTried(8, True)] * 23 + [RateTried(16, None)], None),
        ([RateTried(64, True), RateTried(60, None, confirming=True)], RateStep(60, confirming=True)),
        ([RateTried(0.2, False)], RateStep(0.1)),
        ([RateTried(0.19, False)], None),
        ([RateTried(8, True), RateTried(16, False)], RateStep(16)),
        ([RateTried(8, True), RateTried(15.25, False)], RateStep(15.25)),
    ],
)
def test_what_is_tried_next(seen: list[RateTried], step: RateStep | None) -> None:
    assert next_step(seen, 8) == step


def test_a_miss_close_above_what_was_met_is_not_made_once_more() -> None:
    found = next_step([RateTried(8, True), RateTried(12, False)], 8)
    assert found is not None
    assert 8 < found.rate < 12


@pytest.mark.parametrize(("reach", "share", "confirming"), [(6, 0.25, True), (10, 0.5, False)])
def test_the_search_goes_on_with_the_median_until_the_rate_is_known_to_a_tenth(
    reach: float, share: float, confirming: bool
) -> None:
    known = [RateTried(100 - reach, True), RateTried(100 + reach, False)] * 4
    found = highest_rate(known)
    assert found.half_width == pytest.approx(0.095 if confirming else 0.108, abs=0.0005)
    assert next_step(known, 8) == RateStep(float(f"{found.at(share):.3g}"), confirming)


@pytest.mark.parametrize(
    ("text", "percentile", "limit_ms", "results"),
    [
        ("p99<=100", "p99", 100, 1_000),
        ("p50 <= 2.5ms", "p50", 2.5, 20),
        ("p99.9<=1000 ms", "p99.9", 1e3, 10_000),
    ],
)
def test_bounds(text: str, percentile: str, limit_ms: float, results: int) -> None:
    bound = RateBound.parse(text)
    assert (bound.percentile, bound.limit_ms, bound.results) == (percentile, limit_ms, results)


@pytest.mark.parametrize("text", ["", "p99", "p98<=5", "p99<5", "p99<=0", "99<=5", "p99<=-1"])
def test_bounds_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="give p50, p90"):
        RateBound.parse(text)


def test_a_run_that_tells_nothing_is_made_once_more() -> None:
    verdicts = iter([True, None, True, True] + [False] * 30)
    assert of_search(tried(lambda rate: next(verdicts)))[:5] == [8, 16, 16, 32, 64]


def test_a_rate_that_tells_nothing_twice_counts_as_missed() -> None:
    verdicts = iter([True, None, None] + [True] * 30)
    seen = tried(lambda rate: next(verdicts))
    assert of_search(seen)[:3] == [8, 16, 16]
    assert 8 < of_search(seen)[3] < 16
    assert [(run.rate, run.met) for run in told(seen)[:2]] == [(8, True), (16, False)]


def test_where_nothing_is_ever_told_it_ends_all_the_same() -> None:
    seen = tried(lambda rate: None)
    assert of_search(seen) == [8, 8, 4, 4, 2, 2, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]


def conducted(
    cells: list[Cell],
    folder: Path,
    caveats: Callable[[PlannedRun], tuple[str, ...]],
    bound: RateBound = BOUND,
    failing: int = 0,
) -> tuple[list[str], Study]:
    """A study that searches, of a server whose p99 is as many ms as requests a second come.

    What the search said of each run, and what the report reads of it all. So many more requests fail, and
    where the objective of --slo is the bound, windows count the good ones.
    """
    by_slo = isinstance(bound, GoodputBound)
    book, fold = searched("slo" if by_slo else "p99<=100"), RunFold()
    book.header["options"] |= {"slo": "p99<=100"} if by_slo else {}
    fold.follow(book.header)
    search, said, made = RateSearch(cells, bound), list[str](), list[tuple[object, ...]]()
    outcomes: list[Outcome] = []
    while runs := search.next(outcomes):
        (run,) = runs
        told = len(book.records)
        level, batch = run.cell.level, run.cell.batch
        at_level = (run.cell.endpoint, batch, level)
        made.append(at_level)
        assert run.repeat == made.count(at_level)
        assert (run.cell.requests, run.cell.seconds) == ((20, 6) if run.confirming else (10, 3))
        assert run.to_record().get("confirming", False) is run.confirming
        failures = {"timeout": failing} if failing else {}
        tag = at_rate(book, level, level, HTTP.name, batch=batch, repeat=run.repeat, failures=failures)
        for window in book.measured(tag) if by_slo else ():
            latencies = decoded(window["histograms"]["latency"])
            window["good"] = int(latencies.counts[middles_ns(latencies.indices) <= 100.05e6].sum())
        for code in caveats(run):
            if code == "failed":
                book.records[-1] |= {"status": code}
            else:
                book.caveat(tag, code, "seen")
        book.header["plan"][-1] |= {"confirming": True} if run.confirming else {}
        book.plan_later()
        for record in (book.records[-1], *book.records[told:-1]):
            fold.on_record(record)
        outcomes = [Outcome(run, fold.summary(tag_of(tag)))]
        said.append(f"{level:g}{search.remark(outcomes[0])}")
    return said, load_study(book.write(folder))


def judged_by_report(study: Study) -> list[bool | None]:
    bound = find_bound(study)
    assert bound is not None
    return [bound.met_by(run) for run in study.runs]


def judged_by_search(said: list[str]) -> list[bool | None]:
    words = {"met": True, "not met": False}
    return [words.get(line.partition(" ms, ")[2].partition(";")[0]) for line in said]


def test_the_search_goes_on_over_a_step_at_which_the_client_was_the_limit(tmp_path: Path) -> None:
    """What failed there is no word of the server's, and the report rests on the same runs."""
    at_32 = PlannedRun(Cell(HTTP, 1, 32, 10, 3, "open", arrivals="constant", max_in_flight=5), 1)
    spoilt = lambda run: ("client-bound",) if run == at_32 else ()  # noqa: E731
    said, study = conducted(CELLS[:1], tmp_path, spoilt)
    assert said[:5] == [
        "8  p99 8.0 ms, met",
        "16  p99 16.0 ms, met",
        "32  p99 32.0 ms, tells nothing: the client was the limit",
        "32  p99 32.0 ms, met",
        "64  p99 64.0 ms, met",
    ]
    assert judged_by_report(study) == judged_by_search(said)
    (found,) = searches(study, RateBound("p99", 100))
    assert found.confirmed
    assert len(found.met) == 3
    assert 85 <= found.met[0].level <= 100 < found.missed[0].level <= 105
    assert found.unknown == []


@pytest.mark.parametrize(
    "code", ["client-bound", "rate-missed", "counts-mismatch", "worker-joined", "cold-shape"]
)
def test_a_rate_that_tells_nothing_again_is_an_end_and_no_miss(tmp_path: Path, code: str) -> None:
    said, study = conducted(CELLS[:1], tmp_path, lambda run: (code,) if run.cell.level > 30 else ())
    assert judged_by_report(study) == judged_by_search(said)
    (found,) = searches(study, RateBound("p99", 100))
    assert found.missed == []
    assert 25 <= found.met[0].level <= 30 < found.unknown[0].level <= 31.5
    assert len(found.unknown) >= 2


def test_latency_beyond_the_bound_is_a_miss_whatever_the_client_lacked(tmp_path: Path) -> None:
    said, study = conducted(
        CELLS[:1], tmp_path, lambda run: ("client-bound",) if run.cell.level > 100 else ()
    )
    assert "128  p99 128.0 ms, not met; searching: 89 (45–200)/s after 5 runs" in said
    assert judged_by_report(study) == judged_by_search(said)


def test_one_cell_after_the_other(tmp_path: Path) -> None:
    said, _ = conducted(CELLS, tmp_path, lambda run: ())
    assert said[:5] == [f"{rate}  p99 {rate}.0 ms, met" for rate in (8, 16, 32, 64)] + [
        "128  p99 128.0 ms, not met; searching: 89 (45–200)/s after 5 runs"
    ]
    assert said[-1].endswith("/s: 3 of 3")
    assert said[len(said) // 2 :] == said[: len(said) // 2]


def test_a_run_that_failed_ends_the_search_of_its_cell(tmp_path: Path) -> None:
    failed = lambda run: ("failed",) if run.cell.batch == 1 and run.cell.level > 8 else ()  # noqa: E731
    said, _ = conducted(CELLS, tmp_path, failed)
    assert said[:4] == [
        "8  p99 8.0 ms, met",
        "16  p99 16.0 ms, tells nothing: failed",
        "8  p99 8.0 ms, met",
        "16  p99 16.0 ms, met",
    ]


def test_without_a_summary_the_search_of_a_cell_ends() -> None:
    search = RateSearch(CELLS, RateBound("p99", 100))
    (first,) = search.next([])
    assert search.remark(Outcome(first, None)) == "  tells nothing"
    assert search.next([Outcome(first, None)]) == [PlannedRun(CELLS[1], 1)]
    assert search.next([Outcome(first, None)]) == []


@pytest.mark.parametrize(("failing", "highest"), [(0, 100), (9, 100), (11, 0)])
def test_the_highest_rate_that_keeps_the_objective_may_have_a_few_failures(
    failing: int, highest: float, tmp_path: Path
) -> None:
    """Of 1,000 requests 20 take as long as the rate; those that fail count as not good."""
    bound = GoodputBound.of(Slo.parse("p99<=100"))
    said, study = conducted(CELLS[:1], tmp_path, lambda run: (), bound, failing)
    assert find_bound(study) == bound
    share = {0: "100 %", 9: "99.1 %", 11: "98.91 %"}[failing]
    assert said[0] == f"8  {share} good, {'met' if highest else 'not met'}"
    (found,) = searches(study, bound)
    assert found.confirmed is bool(highest)
    if highest:
        assert 85 <= found.met[0].level <= highest < found.missed[0].level
        assert f"128  {'98 %' if not failing else '97.12 %'} good, not met" in said[4]
