"""The search for the highest rate that keeps a bound."""

from collections.abc import Callable

import pytest

from reports.histogram import buckets, codec
from swarm.errors import UsageError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.rate_search import MOST_STEPS, RateBound, RateSearch, rates
from swarm.plan.schedule import Outcome
from users.endpoint import Endpoint

HTTP = Endpoint("a-http", "a", "http", "fp32", "h:1", "m")
MS = 1_000_000


def outcome(run: PlannedRun, ms: float, failed: int = 0, dropped: int = 0, sound: bool = True) -> Outcome:
    latency = codec.merged([codec.encoded_ns([round(ms * MS)] * 100)[0]])
    return Outcome(run, sound, 100 + failed, failed, dropped, latency)


def tried(meets: Callable[[float], bool], start: float = 8) -> list[float]:
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
    [("p99<=100", 99, 100, 1_000), ("p50 <= 2.5ms", 50, 2.5, 20), ("p99.9<=1000 ms", 99.9, 1_000, 10_000)],
)
def test_bounds(text: str, percentile: float, limit_ms: float, results: int) -> None:
    bound = RateBound.parse(text)
    assert (bound.percentile, bound.limit_ms, bound.results) == (percentile, limit_ms, results)


@pytest.mark.parametrize("text", ["", "p99", "p98<=5", "p99<5", "p99<=0", "99<=5", "p99<=-1"])
def test_bounds_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--find-rate"):
        RateBound.parse(text)


def test_a_bound_is_met_only_by_a_sound_and_whole_run() -> None:
    bound, run = RateBound(99, 100), PlannedRun(Cell(HTTP, 1, 8, 10, 1, "open", "constant", 5), 1)
    assert bound.met_by(outcome(run, 99))
    assert bound.met_by(outcome(run, 101)) is False
    assert bound.met_by(outcome(run, 99, failed=1)) is False
    assert bound.met_by(outcome(run, 99, dropped=1)) is False
    assert bound.met_by(outcome(run, 99, sound=False)) is None
    assert bound.met_by(Outcome(run, True, 5, 5, 0, buckets.EMPTY)) is False
    assert bound.met_by(Outcome(run, True, 0, 0, 0, buckets.EMPTY)) is None


def test_a_run_that_tells_nothing_ends_the_search() -> None:
    search = rates(8)
    assert [next(search), search.send(True)] == [8, 16]
    with pytest.raises(StopIteration):
        search.send(None)


def test_what_is_said_of_a_run() -> None:
    cell = Cell(HTTP, 1, 8, 10, 1, "open", "constant", 5)
    search, run = RateSearch([cell], RateBound(99, 100)), PlannedRun(cell, 1)
    assert search.remark(outcome(run, 99)) == "   p99 99.0 ms, met"
    assert search.remark(outcome(run, 101)) == "   p99 101.0 ms, not met"
    assert search.remark(Outcome(run, False, 0, 0, 0, buckets.EMPTY)) == "   tells nothing"


def test_one_cell_after_the_other() -> None:
    cells = [Cell(HTTP, batch, 8, 10, 1, "open", "constant", 5) for batch in (1, 4)]
    search = RateSearch(cells, RateBound(99, 100))
    names, run = [], search.next(None)
    while run:
        names.append(run.cell.name)
        run = search.next(outcome(run, run.cell.level))
    first = [name for name in names if "/b1/" in name]
    assert names[: len(first)] == first
    assert first[:5] == ["a-http/b1/r8", "a-http/b1/r16", "a-http/b1/r32", "a-http/b1/r64", "a-http/b1/r128"]
    assert [name.replace("/b4/", "/b1/") for name in names[len(first) :]] == first
