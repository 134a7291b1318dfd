"""The conductor walks runs: what it asks, what it writes, what it makes of losses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swarm.errors import StudyError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome
from swarm.sampling.triton_trace import join
from swarm.study.conductor import LINK_RAMP_S, RAMP_S
from swarm.study.run_phases import COUNTING_S, POLL_S, STALL_S
from tests.swarm.stand import GRPC, HTTP, SPEEDING_UP, FixedSchedule, Stand, a_run
from users.endpoint import Endpoint


def test_a_run_from_start_to_end(stand: Stand) -> None:
    stand.conductor(a_run()).walk()
    assert [op for op, _ in stand.workers.asked] == ["cell", "phase", "mark", "phase", "cool_down", "drain"]
    assert [data["phase"] for op, data in stand.workers.asked if op == "phase"] == ["warm-up", "measure"]
    assert stand.spawned == [2, 0]
    kinds = [(r["kind"], r.get("event") or r.get("phase") or r.get("when")) for r in stand.records()]
    assert kinds == [
        ("run", "start"),
        ("serving", None),
        ("cold", None),
        ("phase", "warm-up"),
        ("server", "before"),
        ("phase", "measure"),
        ("phase", "drain"),
        ("server", "after"),
        ("drained", "measure"),
        ("drained", "measure"),
        ("run", "end"),
    ]
    assert stand.sampler.told == ["begin a-http/b4/c2", "warm-up", "measure", "drain", "end"]
    start, end = stand.records()[0], stand.records()[-1]
    assert (start["workers"], start["hosts"]) == (["w0", "w1"], 2)
    assert end["status"] == "done"
    assert len(stand.said) == 1
    assert "a-http/b4/c2" in stand.said[0]


def test_what_came_back_before_the_mark_is_counted_before_the_first_reading(stand: Stand) -> None:
    marked: list[float] = []
    stand.workers.on_ask = lambda op: marked.append(stand.clock()) if op == "mark" else None
    stand.conductor(a_run()).walk()
    before = next(r for r in stand.records() if r.get("when") == "before")
    assert before["t_ns"] / 1e9 - marked[0] >= COUNTING_S


def test_a_known_first_call_is_recorded_under_who_sent_it(stand: Stand) -> None:
    grpc = Endpoint("a-grpc", "onnx", "grpc", "fp32", "h:3", "m")
    stand.first_calls.known(HTTP, 4, 9_000)
    stand.conductor(a_run(grpc), a_run(HTTP)).walk()
    line = {"endpoint": "a-http", "batch": 4, "first_ns": 9_000, "second_ns": 40_000_000}
    assert [r for r in stand.records() if r["kind"] == "cold"] == [{"kind": "cold", **line, "opening": True}]
    assert stand.called == [("a-http", 4)]


def test_a_first_call_that_failed_is_left_to_the_warm_up(stand: Stand) -> None:
    stand.refused = {4}
    stand.conductor(a_run(), a_run()).walk()
    assert stand.called == [("a-http", 4)]
    assert [text for text in stand.said if "first request" in text] == [
        "a-http/b4/c2: a first request failed (timeout: no answer)"
    ]
    assert [r for r in stand.records() if r["kind"] == "cold"] == []
    assert [r["status"] for r in stand.records() if r.get("event") == "end"] == ["done", "done"]


def test_a_warm_up_lasts_until_the_server_is_steady(stand: Stand) -> None:
    stand.collector.steady_after = 200
    stand.conductor(a_run()).walk()
    t_ns = [r["t_ns"] for r in stand.records() if r["kind"] == "phase"]
    assert t_ns[1] - t_ns[0] == pytest.approx(200 * POLL_S * 1e9, rel=0.05)
    assert [r for r in stand.records() if r["kind"] == "caveat"] == []


def test_a_warm_up_that_does_not_settle_is_cut_and_said(stand: Stand) -> None:
    stand.collector.seconds = SPEEDING_UP
    stand.conductor(a_run()).walk()
    (caveat,) = [r for r in stand.records() if r["kind"] == "caveat"]
    assert (caveat["code"], caveat["text"]) == (
        "unsteady",
        "not steady after 10 s of warm-up: latency still moves: 60 ms at first, 27 ms at last",
    )


def test_a_warm_up_that_tells_nothing_is_cut_without_a_word(stand: Stand) -> None:
    stand.collector.steady_after = 10_000
    stand.conductor(a_run()).walk()
    assert [r for r in stand.records() if r["kind"] == "caveat"] == []


def test_open_load_is_ordered_alike_from_every_worker_and_begins_at_one_moment(stand: Stand) -> None:
    cell = Cell(HTTP, 1, 50, 10, 0, "open", arrivals="poisson", max_in_flight=12)
    stand.workers.dropped = 3
    outcomes: list[Outcome | None] = []
    stand.conductor(schedule=Watched([PlannedRun(cell, 2)], outcomes)).walk()
    assert stand.spawned == [12, 0]
    orders = [data for op, data in stand.workers.asked if op == "phase"]
    assert [(o["phase"], o["arrivals"], o["rate"], o["seed"]) for o in orders] == [
        ("warm-up", "poisson", 50, "3/a-http/b1/r50/2/warm-up"),
        ("measure", "poisson", 50, "3/a-http/b1/r50/2/measure"),
    ]
    assert {o["start_utc_ns"] for o in orders} == {1_050_000_000}
    assert outcomes[0] is None
    assert outcomes[1] == Outcome(PlannedRun(cell, 2), None)


def test_a_profile_warms_up_at_its_base_and_lasts_as_long_as_it_is(stand: Stand) -> None:
    cell = Cell(HTTP, 1, 50, 9_999, 0, "open", arrivals="constant", max_in_flight=12, profile="ramp:2,hold:3")
    stand.conductor(PlannedRun(cell, 1)).walk()
    orders = [data for op, data in stand.workers.asked if op == "phase"]
    assert [(o["phase"], o["rate"], o["profile"]) for o in orders] == [
        ("warm-up", 5, ""),
        ("measure", 50, "ramp:2,hold:3"),
    ]
    # its seconds are those of the wall clock
    assert [o["start_utc_ns"] for o in orders] == [1_050_000_000, 2_000_000_000]
    phases = {r["phase"]: r for r in stand.records() if r["kind"] == "phase"}
    assert phases["measure"]["start_utc_ns"] == 2_000_000_000
    assert "start_utc_ns" not in phases["warm-up"]
    lasted_s = (phases["drain"]["t_ns"] - phases["measure"]["t_ns"]) / 1e9
    # the fake clock stands still while the wall clock is waited for: 1 s of lead, then 5 s
    assert lasted_s == pytest.approx(6, abs=2 * POLL_S)


def test_runs_that_the_header_could_not_know_of_are_written_as_they_come(stand: Stand) -> None:
    schedule = Watched([a_run(HTTP), a_run(GRPC)], [])
    schedule.planned = ()
    stand.conductor(schedule=schedule).walk()
    plans = [r["runs"] for r in stand.records() if r["kind"] == "plan"]
    assert [[entry["cell"] for entry in runs] for runs in plans] == [["a-http/b4/c2"], ["b-grpc/b4/c2"]]
    assert stand.said[0] == "trying a-http/b4/c2: 5 s after its warm-up"
    assert stand.said[1].startswith("[  1] a-http/b4/c2")


class Watched(FixedSchedule):
    """A list that keeps the outcomes it is told."""

    def __init__(self, runs: list[PlannedRun], outcomes: list[Outcome | None]) -> None:
        super().__init__(runs)
        self._outcomes = outcomes

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        self._outcomes.append(outcome)
        return super().next(outcome)


def test_measuring_goes_on_until_requests_and_seconds_are_both_reached(stand: Stand) -> None:
    stand.conductor(a_run(requests=10, seconds=3)).walk()
    t_ns = {r["phase"]: r["t_ns"] for r in stand.records() if r["kind"] == "phase"}
    assert t_ns["drain"] - t_ns["measure"] == pytest.approx(3e9, abs=0.05e9)
    assert stand.collector.ok >= 10


def test_counters_are_read_under_load_and_again_until_they_hold_what_was_answered(stand: Stand) -> None:
    stand.served = [40, 45, 49, 51, 60]
    stand.conductor(a_run()).walk()
    told = [r for r in stand.records() if r["kind"] == "server"]
    # two workers have had five successes each
    assert [r["counters"]["requests"] for r in told] == [40, 51]
    assert told[1]["t_ns"] > told[0]["t_ns"] > 0


def test_counters_that_never_hold_it_are_read_all_the_same(stand: Stand) -> None:
    stand.conductor(a_run()).walk()
    assert [r["counters"]["requests"] for r in stand.records() if r["kind"] == "server"] == [7, 7]
    assert stand.records()[-1]["status"] == "done"


def test_a_server_is_warmed_up_once_for_each_batch_whatever_the_endpoint_or_the_users(stand: Stand) -> None:
    stand.collector.steady_after = 200
    other = Endpoint("c-http", "onnx", "http", "fp32", "h:1", "m")
    eight = PlannedRun(replace(a_run().cell, batch=8), 1)
    stand.conductor(a_run(), a_run(other, level=4), a_run(), eight, a_run(GRPC)).walk()
    times = [(r["phase"], r["t_ns"] / 1e9) for r in stand.records() if r["kind"] == "phase"]
    began = [(at, times[place + 1][1]) for place, (phase, at) in enumerate(times) if phase == "warm-up"]
    lasted = [end - begin for begin, end in began]
    whole, ramp = 200 * POLL_S + COUNTING_S, RAMP_S + COUNTING_S
    assert lasted == pytest.approx([whole, ramp, ramp, whole, whole], abs=3 * POLL_S)


def test_over_a_link_connections_have_time_to_grow(stand: Stand) -> None:
    stand.collector.steady_after = 200
    run = PlannedRun(replace(a_run().cell, link="wan"), 1)
    stand.conductor(run, run).walk()
    times = [r["t_ns"] / 1e9 for r in stand.records() if r["kind"] == "phase"]
    lasted = [times[1] - times[0], times[4] - times[3]]
    expected = [200 * POLL_S + COUNTING_S, LINK_RAMP_S + COUNTING_S]
    assert lasted == pytest.approx(expected, abs=3 * POLL_S)


def test_after_its_course_a_load_is_not_kept_up(stand: Stand) -> None:
    cell = Cell(HTTP, 1, 50, 9_999, 0, "open", arrivals="constant", max_in_flight=12, profile="hold:3")
    stand.conductor(PlannedRun(cell, 1)).walk()
    assert [op for op, _ in stand.workers.asked] == ["cell", "phase", "mark", "phase", "drain"]
    assert [r["when"] for r in stand.records() if r["kind"] == "server"] == ["before", "after"]


def test_a_run_whose_warm_up_only_fails_measures_nothing_and_the_next_goes_on(stand: Stand) -> None:
    stand.collector.rate, stand.collector.fail_rate = 0, 1
    stand.conductor(a_run(HTTP), a_run(GRPC)).walk()
    ends = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert [end["status"] for end in ends] == ["failed", "failed"]
    assert ends[0]["note"] == "no request succeeded in the warm-up, so nothing was measured"
    assert ("a-http/b4/c2", 1, "measure") not in stand.collector.phases


def test_a_phase_in_which_nothing_finishes_is_given_up(stand: Stand) -> None:
    stand.collector.rate = 0
    stand.conductor(a_run()).walk()
    (end,) = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert end["note"] == f"nothing finished for {60 + STALL_S:g} s in the warm-up, so it was abandoned"
    assert stand.workers.asked[-1][0] == "drain"
    assert stand.clock.now == pytest.approx(60 + STALL_S, abs=1)


def test_a_long_phase_in_which_something_finishes_goes_on(stand: Stand) -> None:
    stand.conductor(a_run(seconds=1000)).walk()
    assert stand.records()[-1]["status"] == "done"


def test_failures_in_the_warm_up_are_a_caveat(stand: Stand) -> None:
    stand.collector.fail_rate = 1
    stand.conductor(a_run()).walk()
    (caveat,) = [r for r in stand.records() if r["kind"] == "caveat"]
    assert (caveat["code"], caveat["text"]) == ("warm-up-failures", "3 of 6 requests failed")


def test_a_level_that_was_not_reached_makes_the_run_doubtful(stand: Stand) -> None:
    stand.workers.users = 0
    stand.conductor(a_run()).walk()
    (caveat,) = [r for r in stand.records() if r["kind"] == "caveat"]
    assert (caveat["code"], caveat["text"]) == ("users-missing", "0 of 2 users finished a request")


def test_a_worker_that_cannot_fails_the_run_with_its_sentence(stand: Stand) -> None:
    stand.workers.errors["cell"] = "no user class for it"
    stand.conductor(a_run()).walk()
    assert stand.records()[-1]["note"] == "host1_a: no user class for it; host2_b: no user class for it"


def test_a_dead_embedded_server_fails_its_runs_and_spares_the_others(stand: Stand) -> None:
    stand.dead.add("onnx")
    stand.conductor(a_run(HTTP), a_run(GRPC)).walk()
    ends = [r["status"] for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert ends == ["failed", "done"]


def test_more_workers_than_may_be_in_flight_is_refused(stand: Stand) -> None:
    stand.conductor(
        PlannedRun(Cell(HTTP, 1, 50, 10, 0, "open", arrivals="constant", max_in_flight=1), 1)
    ).walk()
    assert stand.records()[-1]["note"] == "--max-in-flight 1: must be at least 1 for each of 2 workers"


def test_a_full_disk_ends_the_study(stand: Stand) -> None:
    stand.collector.fault = "the ledger cannot be written (No space left on device)"
    with pytest.raises(StudyError, match="No space left"):
        stand.conductor(a_run(), a_run(GRPC)).walk()


def test_a_threshold_stops_the_study_in_the_middle_of_a_run(stand: Stand) -> None:
    def stop() -> None:
        stand.tick()
        stand.stopped = "gate: a-http/b4/c2: it is slow" if stand.clock.now > 12 else ""

    stand.clock.on_tick = stop
    conductor = stand.conductor(a_run(seconds=60), a_run(GRPC))
    with pytest.raises(StudyError, match="gate: a-http/b4/c2: it is slow"):
        conductor.walk()
    conductor.abort(stand.stopped)
    assert stand.clock.now == pytest.approx(12, abs=0.1)
    ends = [(r["status"], r["note"]) for r in stand.records() if r.get("event") == "end"]
    assert ends == [("aborted", "gate: a-http/b4/c2: it is slow")]


@pytest.mark.parametrize(
    ("phase", "kinds"), [("warm-up", ["phase", "run"]), ("measure", ["phase", "drained", "drained", "run"])]
)
def test_an_abort_drains_and_ends_the_run_under_way(stand: Stand, phase: str, kinds: list[str]) -> None:
    def interrupt() -> None:
        stand.tick()
        if stand.collector.phases[-1][2] == phase:
            raise KeyboardInterrupt

    stand.clock.on_tick = interrupt
    conductor = stand.conductor(a_run())
    with pytest.raises(KeyboardInterrupt):
        conductor.walk()
    conductor.abort("stopped before its end")
    conductor.abort("a second time changes nothing")
    assert stand.workers.asked[-1][0] == "drain"
    assert [r["kind"] for r in stand.records()][-len(kinds) :] == kinds
    assert (stand.records()[-1]["status"], stand.records()[-1]["note"]) == (
        "aborted",
        "stopped before its end",
    )


def test_a_traced_run_has_its_record_and_its_gap(stand: Stand) -> None:
    stand.traced = join({"a": 5, "b": 5}, {"a": {"QUEUE_START": 1_000, "COMPUTE_START": 9_000}}, 2)
    stand.conductor(a_run()).walk()
    kinds = [r["kind"] for r in stand.records()]
    assert kinds[-4:] == ["drained", "trace", "caveat", "run"]
    trace, caveat = stand.records()[-3:-1]
    assert (trace["cell"], trace["repeat"], trace["requests"], trace["joined"]) == ("a-http/b4/c2", 1, 2, 1)
    assert set(trace["histograms"]) == {"queue"}
    assert (caveat["code"], caveat["text"]) == (
        "trace-gap", "1 of 2 requests were found in Triton's trace",
    )  # fmt: skip


def on(instances: int) -> PlannedRun:
    return PlannedRun(replace(a_run().cell, instances=instances, variant=f"{instances}-instances"), 1)


def test_a_server_is_set_before_a_run_and_cold_again_where_that_took_a_reload(stand: Stand) -> None:
    stand.settings = {2: ""}
    stand.first_calls.known(HTTP, 4, 9_000)
    stand.conductor(on(1), on(2), on(1)).walk()
    assert stand.set == [1, 2, 1]
    cold = [r for r in stand.records() if r["kind"] == "cold"]
    assert [(r["first_ns"], r.get("reloaded", False)) for r in cold] == [
        (9_000, False),
        (4_000_000, True),
    ]
    kinds = [r["kind"] for r in stand.records() if r.get("cell") == "a-http/b4/c2/2-instances"]
    assert kinds[:2] == ["run", "serving"], "what the server says of itself is read after it was set"


def test_a_server_that_cannot_be_set_fails_its_run_alone(stand: Stand) -> None:
    stand.settings = {2: "its server cannot be configured for this cell: no"}
    stand.conductor(on(2), on(1)).walk()
    ends = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert [(r["status"], r["note"]) for r in ends] == [
        ("failed", "its server cannot be configured for this cell: no"),
        ("done", ""),
    ]
    assert [data["cell"] for op, data in stand.workers.asked if op == "cell"] == ["a-http/b4/c2/1-instances"]


def test_what_was_known_and_never_told_is_told_before_it_is_forgotten(stand: Stand) -> None:
    stand.settings = {2: ""}
    stand.first_calls.known(HTTP, 4, 9_000)
    stand.conductor(on(2)).walk()
    cold = [r for r in stand.records() if r["kind"] == "cold"]
    assert [(r["first_ns"], r["opening"], r.get("reloaded", False)) for r in cold] == [
        (9_000, True, False),
        (40_000_000, False, True),
    ]


def test_a_worker_that_cannot_drain_taints_the_run_and_the_study_goes_on(stand: Stand) -> None:
    stand.workers.errors["drain"] = "OSError: [Errno 24] Too many open files"
    stand.conductor(a_run()).walk()
    texts = [r["text"] for r in stand.records() if r["kind"] == "caveat" and r["code"] == "results-lost"]
    assert texts == [f"host{at}: OSError: [Errno 24] Too many open files" for at in ("1_a", "2_b")]
    assert [r["status"] for r in stand.records() if r.get("event") == "end"] == ["done"]
