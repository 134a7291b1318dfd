"""How long a plan takes, before it runs."""

from __future__ import annotations

import pytest

from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.estimate import estimate_s, in_words
from tests.swarm.stand import HTTP


def runs(
    count: int, seconds: float = 2, load: str = "closed", level: float = 1, requests: int = 10
) -> list[PlannedRun]:
    return [PlannedRun(Cell(HTTP, 1, level, requests, seconds, load), 1)] * count


def test_each_run_warms_up_and_measures() -> None:
    assert estimate_s(runs(20), 10) == 20 * (10 + 2)


def test_at_a_rate_requests_need_their_time() -> None:
    assert estimate_s(runs(1, load="open", level=2, requests=100), 10) == 10 + 50
    assert estimate_s(runs(1, load="open", level=200, requests=100), 10) == 10 + 2


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (20, "20 runs, about 4 min"), (4, "4 runs, about 50 s"), (1, "1 run, about 10 s"),
        (11, "11 runs, about 2 min"), (13, "13 runs, about 2 min 30 s"),
        (0, "as many runs as the search needs"),
    ],
)  # fmt: skip
def test_it_is_said_as_people_say_it(count: int, said: str) -> None:
    assert in_words(runs(count), 10) == said
