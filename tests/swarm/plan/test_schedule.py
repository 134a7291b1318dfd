"""Whole repeats that are added while somebody wants them, and cells that are measured at the same time."""

from dataclasses import replace

from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import order
from swarm.plan.schedule import Outcome, RepeatingSchedule, warm_ups
from tests.swarm.stand import GRPC, HTTP, Stand

CELLS = [Cell(HTTP, 4, 2, 10, 0), Cell(GRPC, 4, 2, 10, 0)]


def asked(
    repeats: int, most: int, wanted: list[bool], cells: list[Cell] = CELLS
) -> tuple[RepeatingSchedule, list[tuple[int, int]]]:
    """A schedule whose further repeats are wanted or not, and of which repeats, with how many left."""
    numbers: list[tuple[int, int]] = []

    def is_wanted(number: int, left: int) -> bool:
        numbers.append((number, left))
        return wanted.pop(0)

    return RepeatingSchedule(cells, repeats, most, 5, is_wanted), numbers


def test_repeats_are_added_until_none_is_wanted() -> None:
    schedule, numbers = asked(2, 9, [True, True, False])
    assert schedule.planned == order(CELLS, 2, 5)
    assert schedule.remark(Outcome(schedule.planned[0], None)) == ""
    groups = list(iter(lambda: schedule.next([]), []))
    assert {len(group) for group in groups} == {1}
    assert [run for (run,) in groups] == schedule.planned == order(CELLS, 4, 5)
    assert numbers == [(3, 7), (4, 6), (5, 5)]


def test_cells_for_the_same_time_come_at_once_in_each_repeat_and_others_alone() -> None:
    text = "a-http@c2+b-grpc@c2"
    group = [replace(cell, together=text, variant="together") for cell in CELLS]
    other = [replace(cell, batch=8, together="another", variant="again") for cell in CELLS]
    schedule, _ = asked(2, 3, [True], [*CELLS, *group, *other])
    given = list(iter(lambda: schedule.next([]), []))
    assert [run for runs in given for run in runs] == schedule.planned
    for repeat in (1, 2, 3):
        own = [[run.cell for run in runs] for runs in given if {run.repeat for run in runs} == {repeat}]
        assert sorted(own, key=str) == sorted([[CELLS[0]], [CELLS[1]], group, other], key=str)
    assert len(given) == 12, "no run of one repeat goes with one of another"


def test_a_group_alone_in_a_study_is_not_joined_to_that_of_the_next_repeat() -> None:
    schedule, _ = asked(2, 2, [], [replace(cell, together="a+b") for cell in CELLS])
    assert [[run.repeat for run in schedule.next([])] for _ in range(3)] == [[1, 1], [2, 2], []]


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
