"""Locust's statistics in batches are its own, figure for figure, whenever they are read."""

from locust import env, stats
from locust.env import Environment
from locust.stats import RequestStats, StatsEntry

import random
from typing import Any

import pytest

from swarm.locust_patches.patches import MOST_TALLIED, BatchedStats, three_digits, tune_locust

METHODS, NAMES = ("http", "grpc"), ("a/b1/c1", "warm-up", "drain")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The wall clock's seconds, by hand."""
    now = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr(stats, "bucket_response_time", three_digits)
    return now


def fields(entry: StatsEntry) -> dict[str, Any]:
    """All that an entry says; sums of floats are taken in another order."""
    found = {name: value for name, value in vars(entry).items() if name != "stats"}
    return {**found, "total_response_time": pytest.approx(found["total_response_time"], rel=1e-12)}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cached", [True, False])
def test_they_are_locusts_own(clock: list[float], seed: int, cached: bool) -> None:
    dice = random.Random(seed)
    ours, theirs = BatchedStats(cached), RequestStats(cached)
    for _ in range(4 * MOST_TALLIED):
        clock[0] += dice.choice((0.0, 0.01, 0.3, 5.0))
        method, name, size = dice.choice(METHODS), dice.choice(NAMES), dice.randrange(9_999)
        took_ms: Any = dice.choice((None, dice.expovariate(1 / 20), float(dice.randrange(1, 5_000))))
        for book in (ours, theirs):
            book.log_request(method, name, took_ms, size)
        if dice.random() < 0.1:
            for book in (ours, theirs):
                book.log_error(method, name, "refused")
        if dice.random() < 0.02:
            anew = dice.choice(("clear_all", "reset_all"))
            for book in (ours, theirs):
                getattr(book, anew)()
        if dice.random() < 0.1:
            assert fields(ours.total) == fields(theirs.total)
    assert list(ours.entries) == list(theirs.entries)
    for key, entry in theirs.entries.items():
        assert fields(ours.entries[key]) == fields(entry)
    assert [vars(error) for error in ours.errors.values()] == [vars(e) for e in theirs.errors.values()]
    assert ours.num_requests == theirs.num_requests


def test_requests_are_counted_when_there_are_many_though_nobody_asks(clock: list[float]) -> None:
    ours = BatchedStats()
    kept = ours.total
    for _ in range(MOST_TALLIED + 1):
        assert kept.num_requests == 0
        ours.log_request("http", "a", 1.5, 10)
    assert kept.num_requests == MOST_TALLIED


def test_a_tuned_locust_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "RequestStats", RequestStats)
    tune_locust()
    environment = Environment()
    assert isinstance(environment.stats, BatchedStats)
    environment.create_local_runner()
    told = {"response_time": 1974.4, "response_length": 7, "exception": None}
    environment.events.request.fire(request_type="http", name="a", **told)
    assert environment.stats.get("a", "http").response_times == {1970.0: 1}
