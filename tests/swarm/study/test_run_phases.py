"""Several runs at the same time: what is asked and written of each, how long they last, what ends them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reports.fold.server import SEVERAL
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome
from swarm.study.conductor import RAMP_S
from swarm.study.run_phases import COUNTING_S, LEAD_S, POLL_S, STALL_S, orders_of
from tests.swarm.distributed.test_losses import become, caveats
from tests.swarm.stand import GRPC, HTTP, SPEEDING_UP, Stand, a_run
from tests.swarm.study.test_conductor import Watched, in_order, lasted
from users.endpoint import Endpoint

TOGETHER = "a-http@c2+b-grpc@c3"
SAME = Endpoint("c-grpc", "onnx", "grpc", "fp32", "h:3", "m")
"""Of the model that HTTP asks, too."""
PHASES = ("", "warm-up", "measure")
CHANGED = "its workers changed, and cells that run at the same time need the same ones throughout"
Runs = tuple[PlannedRun, ...]


def grouped(*runs: PlannedRun) -> Runs:
    """The runs for the same time."""
    return tuple(replace(run, cell=replace(run.cell, together=TOGETHER)) for run in runs)


def both(**of_http: Any) -> Runs:
    return grouped(a_run(HTTP, **of_http), a_run(GRPC, level=3))


def ends(stand: Stand) -> list[tuple[str, str, str]]:
    told = [record for record in stand.records() if record.get("event") == "end"]
    return [(record["cell"], record["status"], record["note"]) for record in told]


def test_two_runs_at_the_same_time_from_start_to_end(stand: Stand) -> None:
    order = in_order(stand, named=True)
    stand.workers.users = 2
    stand.held = [{"resident_bytes": 5}] * 4
    outcomes: list[Sequence[Outcome]] = []
    runs = both()
    stand.conductor(schedule=Watched([runs], outcomes)).walk()

    def each(what: str) -> list[str]:
        return [f"{what} {name}" for name in ("a-http", "b-grpc")]

    prepared = [
        f"{what} {name}" for name in ("a-http", "b-grpc") for what in ("serving", "memory before", "cold")
    ]
    assert order == [
        *each("run start"), "ask cell", *prepared,
        *("sampler: begin a-http/b4/c2", "sampler: begin b-grpc/b4/c3", "2 and 3 users"),
        *("sampler: warm-up", *each("phase warm-up"), "ask phase", "ask mark", *each("server before")),
        *("sampler: measure", *each("phase measure"), "ask phase"),
        *(*each("phase drain"), "sampler: drain", "ask cool_down", *each("server after"), "ask drain"),
        *each("drained measure"), *each("drained measure"), *each("memory after"),
        *("sampler: end", *each("run end"), "0 users"),
    ]  # fmt: skip
    assert outcomes == [(), [Outcome(run, None) for run in runs]]
    assert [line.split("  ")[0] for line in stand.said] == ["[1/2] a-http/b4/c2", "[2/2] b-grpc/b4/c3"]
    expected = [(*run.tag, phase) for phase in PHASES for run in runs]
    assert stand.collector.phases == expected, "one count for each run"
    assert {(r["cell"], r["worker"]) for r in stand.records() if r["kind"] == "drained"} == {
        (run.cell.name, worker) for run in runs for worker in ("w0", "w1")
    }


def test_workers_are_told_of_all_cells_in_one_message_and_begin_at_one_moment(stand: Stand) -> None:
    runs = both()
    stand.conductor(runs).walk()
    asked = [(op, data) for op, data in stand.workers.asked if "orders" in data or "cells" in data]
    assert [[one["cell"] for one in data["cells"]] for op, data in asked if op == "cell"] == [
        [run.cell.name for run in runs]
    ]
    orders = [data for _, data in asked if "orders" in data]
    assert [[one["rate"] for one in data["orders"]] for data in orders] == [[2, 3]] * 3
    assert {data["start_utc_ns"] for data in orders} == {1_000_000_000 + round(LEAD_S * 1e9)}
    seeds = [(one["seed"], one["order_seed"]) for one in orders[1]["orders"]]
    assert seeds == [(f"3/{run.cell.name}/1/measure", "3/1/measure/order") for run in runs]


def test_counters_of_each_server_are_read_until_they_hold_its_own_runs_requests(stand: Stand) -> None:
    idle = [0, 100]
    stand.served = [*idle, 0, 100, 9, 10, 109, 110]  # two workers have had five successes of each
    stand.conductor(both()).walk()
    told = [
        (r["cell"], r["when"], r["counters"]["requests"]) for r in stand.records() if r["kind"] == "server"
    ]
    assert told == [
        *(("a-http/b4/c2", "before", 0), ("b-grpc/b4/c3", "before", 100)),
        *(("a-http/b4/c2", "after", 10), ("b-grpc/b4/c3", "after", 110)),
    ]


def test_a_model_that_several_runs_ask_has_no_counters_of_any_one(stand: Stand) -> None:
    stand.conductor(grouped(a_run(HTTP), a_run(SAME), a_run(GRPC)), a_run(HTTP)).walk()
    told = [(r["cell"], r["when"], r.get("error_kind", "")) for r in stand.records() if r["kind"] == "server"]
    group = [("a-http/b4/c2", SEVERAL), ("c-grpc/b4/c2", SEVERAL), ("b-grpc/b4/c2", "")]
    alone = [("a-http/b4/c2", when, "") for when in ("before", "after")]
    assert told == [(cell, when, kind) for when in ("before", "after") for cell, kind in group] + alone


def test_a_model_that_is_a_step_of_anothers_counts_the_requests_of_both(stand: Stand) -> None:
    ensemble = replace(SAME, model="m_jpeg")
    stand.steps = {"m_jpeg": {"decode": {}, "m": {}}}
    stand.conductor(grouped(a_run(HTTP), a_run(ensemble))).walk()
    assert {r.get("error_kind") for r in stand.records() if r["kind"] == "server"} == {SEVERAL}


@pytest.mark.parametrize(("computed", "kind"), [((5, 5), SEVERAL), ((5, 6), ""), ((0, 0), "")])
def test_a_server_at_two_addresses_is_known_by_its_counters(
    stand: Stand, computed: tuple[int, int], kind: str
) -> None:
    stand.computed = dict(zip(("h:1", "h:2"), computed, strict=True))
    stand.conductor(grouped(a_run(HTTP), a_run(GRPC))).walk()
    assert {r.get("error_kind", "") for r in stand.records() if r["kind"] == "server"} == {kind}


@pytest.mark.parametrize(
    ("requests", "seconds", "takes_s"), [(100, 0, 50 * POLL_S), (10, 3, 3), (10, 0, 10 * POLL_S)]
)
def test_measuring_goes_on_until_each_run_has_enough(
    stand: Stand, requests: int, seconds: float, takes_s: float
) -> None:
    stand.collector.rates = {"a-http/b4/c2": 2}
    stand.conductor(both(requests=requests, seconds=seconds)).walk()
    expected = LEAD_S + takes_s if seconds else max(LEAD_S, takes_s)
    assert lasted(stand, "measure", "a-http") == pytest.approx([expected], abs=1.5 * POLL_S)
    assert lasted(stand, "measure", "b-grpc") == lasted(stand, "measure", "a-http")


def test_a_warm_up_lasts_until_the_last_server_is_steady_and_each_doubt_is_its_own(stand: Stand) -> None:
    stand.collector.steady_after = 200
    stand.collector.rates = {"b-grpc/b4/c3": 2}
    stand.conductor(a_run(GRPC, level=3), both(), both()).walk()
    of_http = lasted(stand, "warm-up", "a-http")
    assert of_http == pytest.approx([200 * POLL_S + COUNTING_S, LEAD_S + RAMP_S + COUNTING_S], abs=3 * POLL_S)


def test_a_server_that_does_not_settle_makes_its_own_run_doubtful(stand: Stand) -> None:
    stand.collector.seconds, stand.workers.users = SPEEDING_UP, 2
    stand.conductor(a_run(GRPC, level=3), both()).walk()
    told = [(r["cell"], r["code"]) for r in stand.records() if r["kind"] == "caveat"]
    assert told == [("b-grpc/b4/c3", "unsteady"), ("a-http/b4/c2", "unsteady")], (
        "the first was warm in the group"
    )


def test_levels_that_were_not_reached_are_told_of_their_own_run(stand: Stand) -> None:
    stand.conductor(both()).walk()  # each of two workers has one user of each cell
    told = [(r["cell"], r["text"]) for r in stand.records() if r["kind"] == "caveat"]
    assert told == [("b-grpc/b4/c3", "2 of 3 users finished a request")]


def test_a_lost_worker_ends_all_of_them_and_the_next_run_goes_on(stand: Stand) -> None:
    become(stand, "host1_a", phase="measure")
    stand.workers.users = 3
    stand.conductor(both(), a_run(GRPC)).walk()
    assert ends(stand) == [
        *(("a-http/b4/c2", "failed", CHANGED), ("b-grpc/b4/c3", "failed", CHANGED)),
        ("b-grpc/b4/c2", "done", ""),
    ]
    assert caveats(stand) == [("worker-lost", "worker w1 was lost")] * 2
    assert stand.spawned == [(2, 3), (), (2,), ()], "nobody's users are brought back"
    assert "share" not in [op for op, _ in stand.workers.asked]


def test_a_worker_that_comes_in_the_middle_ends_them_since_locust_makes_all_users_alike(stand: Stand) -> None:
    become(stand, "host1_a", "host2_b", "host3_c", phase="measure")
    stand.conductor(both(), both()).walk()
    assert [note for _, _, note in ends(stand)] == [CHANGED, CHANGED, "", ""]
    assert ("worker-joined", "worker w2 connected during the run") in caveats(stand)
    starts = [r["workers"] for r in stand.records() if r.get("event") == "start"]
    assert starts == [["w0", "w1"]] * 2 + [["w0", "w1", "w2"]] * 2


def test_one_of_which_nothing_finishes_ends_them_though_the_other_goes_on(stand: Stand) -> None:
    def stuck() -> None:
        stand.collector.rates = {"b-grpc/b4/c3": stand.collector.phases[-1][2] != "measure"}
        stand.tick()

    stand.clock.on_tick = stuck
    stand.conductor(both()).walk()
    note = f"nothing of b-grpc/b4/c3 finished for {60 + STALL_S:g} s in the measure, so it was abandoned"
    assert ends(stand) == [(cell, "failed", note) for cell in ("a-http/b4/c2", "b-grpc/b4/c3")]
    assert stand.said[-3:][0] == f"a-http/b4/c2 and b-grpc/b4/c3: {note}"


def test_one_that_has_had_enough_need_not_go_on(stand: Stand) -> None:
    def ended() -> None:
        stand.collector.rates = {"b-grpc/b4/c3": stand.collector.phases[-1][2] != "measure"}
        stand.tick()

    enough = Cell(GRPC, 4, 3, 0, 0, together=TOGETHER)
    stand.clock.on_tick = ended
    stand.conductor((both(seconds=120)[0], PlannedRun(enough, 1))).walk()
    assert [status for _, status, _ in ends(stand)] == ["done", "done"]


def test_a_worker_lost_while_it_is_asked_ends_them_too(stand: Stand) -> None:
    stand.workers.loses = {"phase": "host2_b"}
    stand.conductor(both()).walk()
    assert [status for _, status, _ in ends(stand)] == ["failed", "failed"]


def test_a_server_that_dies_ends_them_all(stand: Stand) -> None:
    def die() -> None:
        stand.tick()
        stand.dead = {"trt"} if stand.collector.phases[-1][2] == "measure" else set()

    stand.clock.on_tick = die
    stand.conductor(both()).walk()
    assert ends(stand) == [
        (cell, "failed", "the embedded trt server died") for cell in ("a-http/b4/c2", "b-grpc/b4/c3")
    ]


def test_where_nothing_succeeds_in_one_warm_up_none_is_measured(stand: Stand) -> None:
    stand.collector.rates, stand.collector.fail_rate = {"b-grpc/b4/c3": 0}, 1
    stand.conductor(both()).walk()
    note = "no request of b-grpc/b4/c3 succeeded in the warm-up, so nothing was measured"
    assert [(status, said) for _, status, said in ends(stand)] == [("failed", note)] * 2
    assert "measure" not in [r.get("phase") for r in stand.records()]


def test_an_abort_ends_all_of_them(stand: Stand) -> None:
    def interrupt() -> None:
        stand.tick()
        if stand.collector.phases[-1][2] == "measure":
            raise KeyboardInterrupt

    stand.clock.on_tick, stand.workers.users = interrupt, 2
    conductor = stand.conductor(both())
    with pytest.raises(KeyboardInterrupt):
        conductor.walk()
    conductor.abort("stopped before its end")
    assert ends(stand) == [
        (cell, "aborted", "stopped before its end") for cell in ("a-http/b4/c2", "b-grpc/b4/c3")
    ]
    assert [r["kind"] for r in stand.records()][-8:] == ["phase"] * 2 + ["drained"] * 4 + ["run"] * 2


def test_a_course_beside_a_steady_load_ends_when_both_have_had_enough(stand: Stand) -> None:
    course = Cell(GRPC, 1, 50, 9_999, 0, "open", arrivals="constant", max_in_flight=12, profile="hold:3")
    stand.conductor(grouped(a_run(HTTP, requests=10), PlannedRun(course, 1))).walk()
    assert "cool_down" not in [op for op, _ in stand.workers.asked], "it has no level to be kept at"
    phases = [r for r in stand.records() if r.get("phase") == "measure" and r["kind"] == "phase"]
    assert [r["start_utc_ns"] for r in phases] == [2_000_000_000] * 2
    assert [status for _, status, _ in ends(stand)] == ["done", "done"]


def test_a_schedule_that_is_split_is_told_alike_to_each_endpoint_but_for_its_part(stand: Stand) -> None:
    def cell(endpoint: Endpoint, level: float, split: float) -> PlannedRun:
        made = Cell(endpoint, 1, level, 10, 0, "open", arrivals="poisson", max_in_flight=4, split=split)
        return PlannedRun(made, 2)

    stand.conductor(grouped(cell(HTTP, 45, 0.9), cell(GRPC, 5, 0.1))).walk()
    (measure,) = [
        data for op, data in stand.workers.asked if op == "phase" and data["orders"][0]["phase"] == "measure"
    ]
    first, second = measure["orders"]
    assert (first["rate"], first["shares"], first["part"]) == (pytest.approx(50), [0.9, 0.1], 0)
    assert first["seed"] == f"3/{TOGETHER}/2/measure"
    assert first["split_seed"] == "3/2/measure/split"
    assert second == first | {"part": 1, "rate": pytest.approx(50)}


@pytest.mark.parametrize(
    ("load", "beside"), [({}, ("hold:604800", 1.6)), ({"load": "open", "arrivals": "constant"}, ("", 1.6))]
)
def test_beside_the_measure_phase_a_course_is_held_at_a_tenth(
    load: dict[str, str], beside: tuple[str, float]
) -> None:
    run = a_run(HTTP, level=16)
    course = {"profile": "steps:4x5", "max_in_flight": 16}
    run = replace(run, cell=replace(run.cell, **course, **load))  # type: ignore[arg-type]
    told = [orders_of(run, phase, 1, [run]) for phase in ("warm-up", "measure", "drain")]
    assert [(one["profile"], one["rate"]) for one in told] == [beside, ("steps:4x5", 16), beside]
    assert {one["users"] for one in told} == {16}
