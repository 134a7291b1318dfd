"""Whole repeats that are added while somebody wants them."""

from dataclasses import replace

from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import order
from swarm.plan.schedule import Outcome, RepeatingSchedule, warm_ups
from tests.swarm.stand import GRPC, HTTP, Stand

CELLS = [Cell(HTTP, 4, 2, 10, 0), Cell(GRPC, 4, 2, 10, 0)]


def asked(repeats: int, most: int, wanted: list[bool]) -> tuple[RepeatingSchedule, list[tuple[int, int]]]:
    """A schedule whose further repeats are wanted or not, and of which repeats, with how many left."""
    numbers: list[tuple[int, int]] = []

    def is_wanted(number: int, left: int) -> bool:
        numbers.append((number, left))
        return wanted.pop(0)

    return RepeatingSchedule(CELLS, repeats, most, 5, is_wanted), numbers


def test_repeats_are_added_until_none_is_wanted() -> None:
    schedule, numbers = asked(2, 9, [True, True, False])
    assert schedule.planned == order(CELLS, 2, 5)
    assert schedule.remark(Outcome(schedule.planned[0], None)) == ""
    runs = list(iter(lambda: schedule.next(None), None))
    assert runs == schedule.planned == order(CELLS, 4, 5)
    assert numbers == [(3, 7), (4, 6), (5, 5)]


def test_a_floor_between_two_runs_of_a_model_loads_nothing_anew() -> None:
    model = replace(CELLS[0], queue_delay_us=500)
    reloaded, floor = replace(model, queue_delay_us=0), replace(CELLS[0], endpoint=HTTP.floor())
    plan = [PlannedRun(cell, 1).to_record() for cell in (model, floor, model, floor, reloaded, floor, floor)]
    assert list(warm_ups(plan)) == [True, True, False, False, True, True, False]
    twice = replace(model, instances=2)
    plan = [PlannedRun(cell, 1).to_record() for cell in (floor, CELLS[1], model, floor, twice, CELLS[1])]
    assert list(warm_ups(plan)) == [True, True, True, False, True, False]


def test_what_is_added_is_in_the_ledger_and_in_the_count_of_runs(stand: Stand) -> None:
    schedule, _ = asked(1, 3, [True, True])
    stand.conductor(schedule=schedule).walk()
    plans = [record["runs"] for record in stand.records() if record["kind"] == "plan"]
    added = [(run.cell.name, run.repeat) for run in order(CELLS, 3, 5)[2:]]
    assert [[(entry["cell"], entry["repeat"]) for entry in plan] for plan in plans] == [added[:2], added[2:]]
    assert [text[:5] for text in stand.said] == [f"[{at}/{at + at % 2}]" for at in range(1, 7)]
    begun = [(r["cell"], r["repeat"]) for r in stand.records() if r.get("event") == "start"]
    assert begun[2:] == added
