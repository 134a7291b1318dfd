"""How long a plan takes, before it runs."""

from dataclasses import replace

import pytest

from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.estimate import LONG_S, estimate_s, in_words, shorten
from swarm.traces.trace import ArrivalTrace, TraceRow
from tests.swarm.stand import HTTP


def runs(
    count: int, seconds: float = 2, load: str = "closed", level: float = 1, requests: int = 10
) -> list[PlannedRun]:
    return [PlannedRun(Cell(HTTP, 1, level, requests, seconds, load), 1)] * count


def test_each_run_measures_and_the_first_of_a_server_and_batch_warms_up() -> None:
    assert estimate_s(runs(20), 10) == 10 + 20 * 2
    batches = [PlannedRun(replace(run.cell, batch=batch), 1) for run in runs(2) for batch in (1, 4)]
    assert estimate_s(batches, 10) == 2 * 10 + 4 * 2


def test_another_setting_loads_the_model_anew_and_takes_a_warm_up() -> None:
    (one,) = runs(1)
    delayed = [PlannedRun(replace(one.cell, queue_delay_us=us), 1) for us in (0, 0, 5_000, 0, 0)]
    assert estimate_s(delayed, 10) == 3 * 10 + 5 * 2


def test_at_a_rate_requests_need_their_time() -> None:
    assert estimate_s(runs(1, load="open", level=2, requests=100), 10) == 10 + 50
    assert estimate_s(runs(1, load="open", level=200, requests=100), 10) == 10 + 2


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (20, "20 runs, at least 50 s"), (4, "4 runs, at least 20 s"), (1, "1 run, at least 10 s"),
        (55, "55 runs, at least 2 min"), (70, "70 runs, at least 2 min 30 s"),
        (0, "as many runs as the search needs"),
    ],
)  # fmt: skip
def test_it_is_said_as_people_say_it(count: int, said: str) -> None:
    assert in_words(runs(count), 10) == said


def test_only_where_no_run_waits_for_replies_is_it_known_beforehand() -> None:
    rated = runs(4, load="open", level=10, requests=100)
    assert in_words(rated, 10) == "4 runs, about 50 s"
    assert in_words([*rated, *runs(1)], 10) == "5 runs, at least 50 s"


def test_the_pace_of_an_earlier_study_tells_what_the_requests_take() -> None:
    # each run costs 30 + 40 × batch 1 units, and the first 160 more
    assert in_words(runs(4, requests=40), 10, pace_s=0.5) == "4 runs, about 3 min 30 s"
    assert in_words(runs(4, requests=40), 10, pace_s=0.01) == "4 runs, about 20 s"


def test_a_study_of_more_than_an_hour_says_how_to_shorten_it() -> None:
    assert shorten(runs(10, seconds=(LONG_S - 10) / 10), 10) == ""
    closed = shorten(runs(10, seconds=LONG_S / 10), 10)
    assert "--repeats" in closed
    assert "--replay-speed" not in closed
    trace = ArrivalTrace.of([TraceRow(0), TraceRow(LONG_S)]).of_endpoint(HTTP.name)
    replayed = [PlannedRun(replace(run.cell, trace=trace), 1) for run in runs(1, seconds=2 * LONG_S)]
    assert "--replay-speed" in shorten(replayed, 10)
