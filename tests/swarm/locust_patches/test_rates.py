"""The rates in Locust's own tables: a cell's over the time it was measured, warm-ups in rows of their own."""

from locust import stats
from locust.env import Environment
from locust.stats import RequestStats, get_stats_summary, print_percentile_stats, print_stats

from argparse import Namespace
from typing import Any

import pytest

from swarm.locust_patches.patches import BatchedStats, follow_study, hush_locust, tune_locust
from swarm.locust_patches.rates import Rates
from users.result import row_of

S = 1_000_000_000
CELL, WARM_UP = "onnx-http/b1/c1", "onnx-http/b1/c1 (warm-up)"


def told(second: int, ok: int, failed: int = 0, **more: Any) -> dict[str, Any]:
    """A window whose requests fill a second of the monotonic clock."""
    made = {"kind": "window", "cell": CELL, "repeat": 1, "phase": "measure", "worker": "w0", "second": second}
    made |= {"ok": ok, "failures": {"timeout": failed} if failed else {}}
    return {**made, "first_start_ns": second * S, "last_end_ns": (second + 1) * S, **more}


def rates(*records: dict[str, Any]) -> Rates:
    made = Rates()
    for record in records:
        made.on_record(record)
    return made


def test_a_cells_rate_is_over_the_time_that_it_was_measured_and_not_over_the_pauses() -> None:
    found = rates(told(0, 12), told(1, 12), told(100, 6, repeat=2), told(200, 90, cell="other/b1/c8"))
    assert found.rate(CELL, "requests") == 10
    assert found.rate("other/b1/c8", "requests") == 90
    assert found.rate("", "requests") == 120 / 4


def test_workers_share_the_time_and_add_their_requests() -> None:
    found = rates(told(0, 12), told(0, 8, worker="w1"), told(1, 10, 2, worker="w1"))
    assert found.rate(CELL, "requests") == (12 + 8 + 12) / 2
    assert found.rate(CELL, "failures") == 1
    assert rates(told(1, 12), told(0, 12), told(1, 6, worker="w1")).rate(CELL, "requests") == 30 / 2


def test_a_warm_up_has_a_row_of_its_own_and_no_part_in_the_total() -> None:
    found = rates(told(0, 3, phase="warm-up"), told(1, 12))
    assert (found.rate(WARM_UP, "requests"), found.rate("", "requests")) == (3, 12)


def test_an_open_loads_time_is_the_length_of_its_phase() -> None:
    arrivals = told(0, 5, first_start_ns=0, last_end_ns=4 * S)
    drained = {"kind": "drained", "cell": CELL, "repeat": 1, "worker": "w0", "due": 5, "phase_ns": 5 * S}
    assert rates(arrivals, drained).rate(CELL, "requests") == 1
    assert rates(arrivals, {**drained, "due": None}).rate(CELL, "requests") == 1.25
    shorter = {**drained, "worker": "w1", "phase_ns": 4 * S}
    assert rates(arrivals, drained, shorter).rate(CELL, "requests") == 1
    assert rates(arrivals, shorter, drained).rate(CELL, "requests") == 1


def test_a_closed_loops_time_is_the_mean_of_its_users() -> None:
    drained = {"kind": "drained", "cell": CELL, "repeat": 1, "worker": "w0", "due": None}
    first = {**drained, "users": 3, "users_ns": 3 * S}
    second = {**drained, "worker": "w1", "users": 1, "users_ns": 2 * S}
    found = rates(told(0, 5), told(1, 5, worker="w1"), first, second, told(10, 6, repeat=2))
    assert found.rate(CELL, "requests") == (5 + 5 + 6) / (5 / 4 + 1)


def test_the_current_rate_is_of_whole_seconds_of_the_cell_under_load() -> None:
    seconds = [told(0, 2), told(1, 10), told(2, 12), told(4, 6), told(5, 1)]
    found = rates(*seconds)
    assert found.current(CELL, "requests") == found.current("", "requests") == (10 + 12 + 0 + 6) / 4
    assert found.current("other/b1/c1", "requests") == 0
    found.on_record({"kind": "run", "event": "end"})
    assert found.current(CELL, "requests") == found.current("", "requests") == 0
    found.on_record(told(6, 3, phase="warm-up"))
    assert (found.current(WARM_UP, "requests"), found.current("", "requests")) == (3, 0)


def test_cells_that_run_at_the_same_time_have_their_own_rates_and_share_the_time() -> None:
    other = "other/b1/r4/with-onnx-http-c1"
    begun = [{"kind": "run", "event": "start", "cell": cell} for cell in (CELL, other)]
    found = rates(*begun)
    for second in range(4):
        found.on_record(told(second, 10))
        found.on_record(told(second, 4, cell=other))
    for rate in (found.current, found.rate):
        assert [rate(row, "requests") for row in (CELL, other, "")] == [10, 4, 14]
    alone = "other/b1/r4"
    for record in (*({**one, "event": "end"} for one in begun), {**begun[1], "cell": alone}):
        found.on_record(record)
    found.on_record(told(9, 9, cell=alone))
    assert found.rate("", "requests") == (40 + 16 + 9) / (4 + 1)


def test_a_warm_up_that_is_told_after_the_measure_phase_is_not_under_load_again() -> None:
    warm_ups = [told(1, 3, phase="warm-up"), told(1, 4, worker="w1", phase="warm-up")]
    found = rates(told(0, 3, phase="warm-up"), told(1, 8), *warm_ups, told(2, 12), told(3, 12), told(4, 1))
    assert found.current(CELL, "requests") == found.current("", "requests") == 12
    assert found.current(WARM_UP, "requests") == 0
    found.on_record(told(4, 5, phase="drain"))
    assert found.current("", "requests") == 0
    found.on_record(told(9, 2, phase="warm-up", repeat=2))
    assert found.current(WARM_UP, "requests") == found.rate(WARM_UP, "requests") == (10 + 2) / (2 + 1)


def test_of_a_long_cell_the_last_ten_seconds_count() -> None:
    found = rates(*(told(second, second) for second in range(30)))
    assert found.current(CELL, "requests") == sum(range(19, 29)) / 10


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setattr("locust.env.RequestStats", RequestStats)
    tune_locust()
    made = Environment()
    made.create_local_runner()
    return made


def fire(environment: Environment, phase: str, count: int, error: Exception | None = None) -> None:
    for _ in range(count):
        told = {"response_time": 80.0, "response_length": 7, "exception": error}
        environment.events.request.fire(request_type="http", name=row_of(CELL, phase), **told)


def test_locusts_tables_have_the_rates_and_a_total_of_what_was_measured(environment: Environment) -> None:
    listeners: list[Any] = []
    follow_study(environment, listeners)
    fire(environment, "warm-up", 4, RuntimeError("cold"))
    fire(environment, "measure", 12)
    for record in (told(0, 0, 4, phase="warm-up"), told(1, 12)):
        listeners[0](record)
    cell, warm_up = environment.stats.get(CELL, "http"), environment.stats.get(WARM_UP, "http")
    total = environment.stats.total
    assert (cell.total_rps, cell.num_requests, cell.fail_ratio) == (12, 12, 0)
    assert (warm_up.total_rps, warm_up.total_fail_per_sec, warm_up.num_failures) == (4, 4, 4)
    assert (total.total_rps, total.num_requests, total.num_failures) == (12, 12, 0)
    assert [(one.name, one.occurrences) for one in environment.stats.errors.values()] == [(WARM_UP, 4)]
    assert cell.to_dict()["total_rps"] == 12
    rows = get_stats_summary(environment.stats, current=False)
    assert [row.split()[-2] for row in rows if CELL in row] == ["12.00", "4.00"]
    assert rows[-1].split()[:2] == ["Aggregated", "12"]
    environment.stats.reset_all()
    assert environment.stats.get(CELL, "http").total_rps == 0


def test_a_plain_locustfile_keeps_its_rates(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(environment.stats, BatchedStats)
    now = [1_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    environment.stats.clear_all()
    now[0] += 4
    fire(environment, "measure", 12)
    assert environment.stats.get(CELL, "http").total_rps == 3


@pytest.mark.parametrize("asked", [{}, {"print_stats": True}, {"only_summary": True}, {"loglevel": "DEBUG"}])
def test_locusts_tables_are_printed_where_asked_for(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, own in (("print_stats", print_stats), ("print_percentile_stats", print_percentile_stats)):
        monkeypatch.setattr(stats, name, own)
    environment = Environment()
    options = {"loglevel": "INFO", "print_stats": False, "only_summary": False, **asked}
    environment.parsed_options = Namespace(**options)
    hush_locust(environment)
    assert (stats.print_stats is print_stats) == bool(asked)
    assert (stats.print_percentile_stats is print_percentile_stats) == bool(asked)
    assert environment.parsed_options.only_summary == (asked in ({}, {"only_summary": True}))


def test_a_window_in_which_nothing_ended_takes_no_time() -> None:
    idle = told(1_000, 0, first_start_ns=0, last_end_ns=0)
    found = rates(idle, told(1_000, 12), told(1_001, 12))
    assert found.rate(CELL, "requests") == 12
