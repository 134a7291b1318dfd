"""The search for the highest rate that keeps a bound."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reports.caveats.rate_bound import RateBound
from reports.study.study import Study, load_study
from reports.topics.load.open_load import find_bound, searches
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.rate_search import MOST_STEPS, RateSearch, rates
from swarm.plan.schedule import Outcome
from tests.reports.open_load import at_rate, searched
from users.endpoint import Endpoint

HTTP = Endpoint("a-http", "a", "http", "fp32", "h:1", "m")
CELLS = [Cell(HTTP, batch, 8, 10, 1, "open", arrivals="constant", max_in_flight=5) for batch in (1, 4)]


def tried(meets: Callable[[float], bool | None], start: float = 8) -> list[float]:
    """The rates a search tries where `meets` says which keep the bound."""
    search, seen = rates(start), []
    rate = next(search)
    while True:
        seen.append(rate)
        try:
            rate = search.send(meets(rate))
        except StopIteration:
            return seen


def test_it_doubles_then_bisects_to_five_per_cent() -> None:
    seen = tried(lambda rate: rate <= 100)
    assert seen[:5] == [8, 16, 32, 64, 128]
    highest, lowest_missed = max(r for r in seen if r <= 100), min(r for r in seen if r > 100)
    assert lowest_missed <= 1.05 * highest
    assert len(seen) <= MOST_STEPS


def test_a_start_that_is_too_high_is_halved() -> None:
    seen = tried(lambda rate: rate <= 1)
    assert seen[:4] == [8, 4, 2, 1]
    assert max(r for r in seen if r <= 1) >= min(r for r in seen if r > 1) / 1.05


def test_where_no_rate_keeps_the_bound_it_gives_up() -> None:
    assert min(tried(lambda rate: False)) == pytest.approx(0.125, abs=0.01)


def test_where_every_rate_keeps_it_it_ends_all_the_same() -> None:
    assert len(tried(lambda rate: True)) == MOST_STEPS


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
    search = rates(8)
    assert [next(search), search.send(True), search.send(None), search.send(True)] == [8, 16, 16, 32]


def test_a_rate_that_tells_nothing_twice_is_left_for_a_lower_one() -> None:
    search = rates(8)
    assert [next(search), search.send(True), search.send(None), search.send(None)] == [8, 16, 16, 11.3]


def test_where_nothing_is_ever_told_it_ends_all_the_same() -> None:
    assert tried(lambda rate: None) == [8, 8, 4, 4, 2, 2, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]


def conducted(
    cells: list[Cell], folder: Path, caveats: Callable[[PlannedRun], tuple[str, ...]]
) -> tuple[list[str], Study]:
    """A study that searches, of a server whose p99 is as many ms as requests a second come.

    What the search said of each run, and what the report reads of it all.
    """
    book, fold = searched("p99<=100"), RunFold()
    fold.follow(book.header)
    search, said = RateSearch(cells, RateBound("p99", 100)), []
    run = search.next(None)
    while run:
        told = len(book.records)
        level, batch = run.cell.level, run.cell.batch
        tag = at_rate(book, level, level, HTTP.name, batch=batch, repeat=run.repeat)
        for code in caveats(run):
            if code == "failed":
                book.records[-1] |= {"status": code}
            else:
                book.caveat(tag, code, "seen")
        book.plan_later()
        for record in (book.records[-1], *book.records[told:-1]):
            fold.on_record(record)
        outcome = Outcome(run, fold.summary())
        said.append(f"{level:g}{search.remark(outcome)}")
        run = search.next(outcome)
    return said, load_study(book.write(folder))


def judged_by_report(study: Study) -> list[bool | None]:
    bound = find_bound(study)
    assert bound is not None
    return [bound.met_by(run) for run in study.runs]


def judged_by_search(said: list[str]) -> list[bool | None]:
    words = {"met": True, "not met": False}
    return [words.get(line.rpartition(" ms, ")[2]) for line in said]


def test_the_search_goes_on_over_a_step_at_which_the_client_was_the_limit(tmp_path: Path) -> None:
    """What failed there is no word of the server's, and the report rests on the same runs."""
    at_32 = PlannedRun(Cell(HTTP, 1, 32, 10, 1, "open", arrivals="constant", max_in_flight=5), 1)
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
    assert 95 <= found.met[0].level <= 100 < found.missed[0].level <= 105
    assert found.unknown == []


@pytest.mark.parametrize(
    "code", ["client-bound", "rate-missed", "counts-mismatch", "worker-joined", "cold-shape"]
)
def test_a_rate_that_tells_nothing_again_is_an_end_and_no_miss(tmp_path: Path, code: str) -> None:
    said, study = conducted(CELLS[:1], tmp_path, lambda run: (code,) if run.cell.level > 30 else ())
    assert judged_by_report(study) == judged_by_search(said)
    (found,) = searches(study, RateBound("p99", 100))
    assert found.missed == []
    assert 28 <= found.met[0].level <= 30 < found.unknown[0].level <= 31.5
    assert len(found.unknown) == 2


def test_latency_beyond_the_bound_is_a_miss_whatever_the_client_lacked(tmp_path: Path) -> None:
    said, study = conducted(
        CELLS[:1], tmp_path, lambda run: ("client-bound",) if run.cell.level > 100 else ()
    )
    assert "128  p99 128.0 ms, not met" in said
    assert judged_by_report(study) == judged_by_search(said)


def test_one_cell_after_the_other(tmp_path: Path) -> None:
    said, _ = conducted(CELLS, tmp_path, lambda run: ())
    assert said[:5] == [f"{rate}  p99 {rate}.0 ms, met" for rate in (8, 16, 32, 64)] + [
        "128  p99 128.0 ms, not met"
    ]
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
    first = search.next(None)
    assert first is not None
    assert search.remark(Outcome(first, None)) == "  tells nothing"
    assert search.next(Outcome(first, None)) == PlannedRun(CELLS[1], 1)
    assert search.next(Outcome(first, None)) is None
