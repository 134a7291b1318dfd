"""The conductor walks runs: what it asks, what it writes, what it makes of losses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from reports.ledger.axes import Topology
from swarm.distributed.protocol import PARTING_S
from swarm.distributed.workers import Answers
from swarm.errors import StudyError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome
from swarm.sampling.triton_trace import join
from swarm.study.conductor import LINK_RAMP_S, RAMP_S
from swarm.study.run_phases import COUNTING_S, LEAD_S, POLL_S, STALL_S
from tests.swarm.stand import GRPC, HTTP, SPEEDING_UP, FixedSchedule, Group, Stand, a_run
from users.backends.asking import AGAIN_S
from users.endpoint import Endpoint


def in_order(stand: Stand, named: bool = False) -> list[str]:
    """What the conductor asks, writes and does from now on, each thing as it comes; with endpoints' names."""
    order: list[str] = []
    write = stand.collector.write

    class Heard(list[Any]):
        def append(self, one: Any) -> None:
            users = " and ".join(map(str, one or (0,)))
            order.append(f"sampler: {one}" if isinstance(one, str) else f"{users} users")

    def written(record: dict[str, Any]) -> None:
        told = record.get("event") or record.get("phase") or record.get("when") or ""
        whose = (record.get("endpoint") or record["cell"]).partition("/")[0] if named else ""
        order.append(" ".join(filter(None, (record["kind"], told, whose))))
        write(record)

    stand.spawned, stand.sampler.told = Heard(), Heard()
    stand.workers.on_ask = lambda op: order.append(f"ask {op}")
    stand.collector.write = written  # type: ignore[method-assign]
    return order


def test_a_run_from_start_to_end(stand: Stand) -> None:
    order = in_order(stand)
    stand.held = [{"resident_bytes": 5}] * 2
    stand.conductor(a_run()).walk()
    assert order == [
        *("run start", "ask cell", "serving", "memory before", "cold"),
        *("sampler: begin a-http/b4/c2", "2 users"),
        *("sampler: warm-up", "phase warm-up", "ask phase", "ask mark", "server before"),
        *("sampler: measure", "phase measure", "ask phase"),
        *("phase drain", "sampler: drain", "ask cool_down", "server after", "ask drain"),
        *("drained measure", "drained measure", "memory after", "sampler: end", "run end", "0 users"),
    ]
    start, end = stand.records()[0], stand.records()[-1]
    assert (start["workers"], start["hosts"]) == (["w0", "w1"], 2)
    assert start["places"] == ["host1", "host2"]
    assert (end["status"], end["note"]) == ("done", "")
    assert {r["utc"] for r in stand.records() if r["kind"] in ("run", "phase")} == {"then"}
    told = {r["kind"]: r for r in stand.records()}
    assert told["serving"]["instances"] == 1
    assert (told["drained"]["worker"], told["drained"]["users"], told["drained"]["finished"]) == ("w1", 1, 5)
    (line,) = stand.said
    assert "a-http/b4/c2" in line


def test_what_workers_are_asked(stand: Stand) -> None:
    waited_s, ask = list[float](), stand.workers.ask

    def timed(op: str, data: Mapping[str, Any], patience_s: float) -> Answers:
        waited_s.append(patience_s)
        return ask(op, data, patience_s)

    stand.workers.ask = timed  # type: ignore[method-assign]
    run = PlannedRun(replace(a_run(requests=1).cell, link="lan"), 2)
    stand.conductor(run).walk()
    assert waited_s == [60, 10, 10, 10, 80, 80]
    assert stand.collector.phases == [("a-http/b4/c2", 2, phase) for phase in ("", "warm-up", "measure")]
    (_, cell), (_, warm_up), _, (_, measure), (_, cool_down), (_, drain) = stand.workers.asked
    more = {"endpoint": HTTP.to_dict(), "addresses": {"host1": "198.18.0.1"}, "users": 2}
    assert cell == {"cells": [run.to_record() | more]}
    orders = {"arrivals": "", "rate": 2, "profile": "", "seconds": 0, "users": 2}
    for asked, phase in ((warm_up, "warm-up"), (measure, "measure"), (cool_down, "drain")):
        patience = {"patience_s": 70} if phase == "drain" else {}
        seeds = {"seed": f"3/a-http/b4/c2/2/{phase}", "order_seed": f"3/2/{phase}/order"}
        expected = {"orders": [orders | {"phase": phase} | seeds], "start_utc_ns": 1_000_000_000}
        assert asked == expected | patience
    assert drain == {"patience_s": 70}, "the request timeout, and time to answer"


@pytest.mark.parametrize(("step_s", "said"), [(-3_600.4, "-3,600"), (1.2, "+1"), (-0.9, ""), (1.0, "")])
def test_a_clock_that_was_set_forward_or_back_is_told_once(stand: Stand, step_s: float, said: str) -> None:
    stand.step_s = step_s
    stand.conductor(a_run(), a_run()).walk()
    found = [(r["code"], r["text"]) for r in stand.records() if r["kind"] == "caveat"]
    assert found == ([("clock-stepped", f"the master's clock was set by {said} s")] if said else [])


def test_what_is_known_of_an_endpoint_is_told_of_each_of_its_runs(stand: Stand) -> None:
    stand.known = [("targets-differ", "it has other addresses there")]
    stand.conductor(a_run(), a_run()).walk()
    found = [(r["code"], r["text"]) for r in stand.records() if r["kind"] == "caveat"]
    assert found == stand.known * 2


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


def lasted(stand: Stand, phase: str, endpoint: str = "") -> list[float]:
    """How many seconds passed from each beginning of a phase to the next one's, in runs of an endpoint."""
    phases = [r for r in stand.records() if r["kind"] == "phase" and r["cell"].startswith(endpoint)]
    times = [(r["phase"], r["t_ns"] / 1e9) for r in phases]
    return [end - begin for (name, begin), (_, end) in pairwise(times) if name == phase]


def test_a_warm_up_lasts_until_the_server_is_steady(stand: Stand) -> None:
    stand.collector.steady_after = 200
    stand.conductor(a_run()).walk()
    assert lasted(stand, "warm-up") == pytest.approx([200 * POLL_S], rel=0.05)
    assert [r for r in stand.records() if r["kind"] == "caveat"] == []


def test_before_it_counts_each_user_has_sent_twice_and_five_requests_have_come_back(stand: Stand) -> None:
    many, rate = a_run(level=40), Cell(HTTP, 4, 50, 10, 0, "open", arrivals="constant", max_in_flight=40)
    stand.conductor(many, many, PlannedRun(rate, 1), a_run(GRPC, level=1)).walk()
    twice, ramp = 2 * 40 * POLL_S, LEAD_S + RAMP_S
    expected = [COUNTING_S + least for least in (twice, twice, ramp, 5 * POLL_S)]
    assert lasted(stand, "warm-up") == pytest.approx(expected, abs=1.5 * POLL_S)


@pytest.mark.parametrize("load", ["closed", "open"])
def test_a_warm_up_that_does_not_settle_is_cut_and_said(stand: Stand, load: str) -> None:
    stand.collector.seconds = SPEEDING_UP
    stand.conductor(PlannedRun(Cell(HTTP, 1, 2, 10, 0, load, max_in_flight=2), 1)).walk()
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
    cell = Cell(HTTP, 1, 50, 10, 3, "open", arrivals="poisson", max_in_flight=12)
    stand.workers.dropped, stand.workers.users = 3, 0
    outcomes: list[Sequence[Outcome]] = []
    stand.conductor(schedule=Watched([PlannedRun(cell, 2)], outcomes)).walk()
    assert stand.spawned == [(12,), ()]
    asked = [data for op, data in stand.workers.asked if op in ("phase", "cool_down")]
    orders = [one for data in asked for one in data["orders"]]
    assert [(o["phase"], o["arrivals"], o["rate"], o["seed"]) for o in orders] == [
        (phase, "poisson", 50, f"3/a-http/b1/r50/2/{phase}") for phase in ("warm-up", "measure", "drain")
    ]
    assert lasted(stand, "measure") == pytest.approx([LEAD_S + 3], abs=1.5 * POLL_S)
    assert [r for r in stand.records() if r["kind"] == "caveat"] == [], "users may be idle at a rate"
    assert {data["start_utc_ns"] for data in asked} == {1_050_000_000}
    assert outcomes == [(), [Outcome(PlannedRun(cell, 2), None)]]


def test_a_profile_warms_up_at_its_base_and_lasts_as_long_as_it_is(stand: Stand) -> None:
    cell = Cell(HTTP, 1, 50, 9_999, 0, "open", arrivals="constant", max_in_flight=12, profile="ramp:2,hold:3")
    stand.conductor(PlannedRun(cell, 1)).walk()
    asked = [data for op, data in stand.workers.asked if op == "phase"]
    assert [(o["phase"], o["rate"], o["profile"]) for data in asked for o in data["orders"]] == [
        ("warm-up", 5, ""),
        ("measure", 50, "ramp:2,hold:3"),
    ]
    # its seconds are those of the wall clock
    assert [data["start_utc_ns"] for data in asked] == [1_050_000_000, 2_000_000_000]
    phases = {r["phase"]: r for r in stand.records() if r["kind"] == "phase"}
    assert phases["measure"]["start_utc_ns"] == 2_000_000_000
    assert "start_utc_ns" not in phases["warm-up"]
    # the fake clock stands still while the wall clock is waited for: 1 s of lead, then 5 s
    assert lasted(stand, "measure") == pytest.approx([6], abs=2 * POLL_S)


def test_runs_that_the_header_could_not_know_of_are_written_as_they_come(stand: Stand) -> None:
    schedule = Watched([a_run(HTTP), a_run(GRPC)], [])
    schedule.planned = ()
    stand.conductor(schedule=schedule).walk()
    plans = [r["runs"] for r in stand.records() if r["kind"] == "plan"]
    assert [[entry["cell"] for entry in runs] for runs in plans] == [["a-http/b4/c2"], ["b-grpc/b4/c2"]]
    assert stand.said[0] == "trying a-http/b4/c2: 5 s after its warm-up"
    assert stand.said[1].startswith("[  1] a-http/b4/c2")
    assert stand.said[1].endswith(", and a remark")


class Watched(FixedSchedule):
    """A list that keeps the outcomes it is told, and remarks on each."""

    def __init__(self, runs: list[Group], outcomes: list[Sequence[Outcome]]) -> None:
        super().__init__(runs)
        self._outcomes = outcomes

    def next(self, outcomes: Sequence[Outcome]) -> Sequence[PlannedRun]:
        self._outcomes.append(outcomes)
        return super().next(outcomes)

    def remark(self, outcome: Outcome) -> str:
        return ", and a remark"


@pytest.mark.parametrize(("requests", "seconds", "takes_s"), [(10, 3, 3), (100, 0.5, 50 * POLL_S)])
def test_measuring_goes_on_until_requests_and_seconds_are_both_reached(
    stand: Stand, requests: int, seconds: float, takes_s: float
) -> None:
    stand.collector.fail_rate = 1  # what failed was a request, too: two are over at every tick
    stand.conductor(a_run(requests=requests, seconds=seconds)).walk()
    assert lasted(stand, "measure") == pytest.approx([takes_s], abs=1.5 * POLL_S)


@pytest.mark.parametrize("before", [0, 40])
def test_counters_are_read_under_load_and_again_until_they_hold_what_was_answered(
    stand: Stand, before: int
) -> None:
    stand.served = [before + more for more in (0, 5, 9, 11, 20)]
    stand.conductor(a_run()).walk()
    told = [r for r in stand.records() if r["kind"] == "server"]
    # two workers have had five successes each
    assert [r["counters"]["requests"] for r in told] == [before, before + 11]
    _, begin_ns, end_ns = (r["t_ns"] for r in stand.records() if r["kind"] == "phase")
    assert [r["t_ns"] for r in told] == [begin_ns, pytest.approx(end_ns + 2 * AGAIN_S * 1e9)]


def test_counters_that_never_hold_it_are_read_all_the_same(stand: Stand) -> None:
    stand.conductor(a_run()).walk()
    assert [r["counters"]["requests"] for r in stand.records() if r["kind"] == "server"] == [7, 7]
    assert stand.records()[-1]["status"] == "done"


WHOLE_S, RAMPED_S = 200 * POLL_S + COUNTING_S, RAMP_S + COUNTING_S


def test_a_server_is_warmed_up_once_for_each_batch_whatever_the_endpoint_or_the_users(stand: Stand) -> None:
    stand.collector.steady_after = 200
    other = Endpoint("c-http", "onnx", "http", "fp32", "h:1", "m")
    eight = PlannedRun(replace(a_run().cell, batch=8), 1)
    stand.conductor(a_run(), a_run(other, level=4), a_run(), eight, a_run(GRPC)).walk()
    expected = [WHOLE_S, RAMPED_S, RAMPED_S, WHOLE_S, WHOLE_S]
    assert lasted(stand, "warm-up") == pytest.approx(expected, abs=3 * POLL_S)


def test_over_a_link_connections_have_time_to_grow(stand: Stand) -> None:
    stand.collector.steady_after = 200
    run = PlannedRun(replace(a_run().cell, link="wan"), 1)
    stand.conductor(run, run).walk()
    assert lasted(stand, "warm-up") == pytest.approx([WHOLE_S, LINK_RAMP_S + COUNTING_S], abs=3 * POLL_S)


def test_after_its_course_a_load_is_not_kept_up(stand: Stand) -> None:
    def drained(op: str) -> None:
        for count in stand.collector.counts.values():
            count[0] = 20 if op == "drain" else 0
        stand.collector.rate = op != "mark"  # nothing comes back in the measure phase

    cell = Cell(HTTP, 1, 50, 9_999, 0, "open", arrivals="constant", max_in_flight=12, profile="hold:3")
    stand.workers.on_ask, stand.served = drained, [40, 59, 60, 61]
    stand.conductor(PlannedRun(cell, 1)).walk()
    assert [op for op, _ in stand.workers.asked] == ["cell", "phase", "mark", "phase", "drain"]
    told = [(r["when"], r["counters"]["requests"]) for r in stand.records() if r["kind"] == "server"]
    assert told == [("before", 40), ("after", 60)], "with what came back in the drain"
    assert lasted(stand, "measure") == pytest.approx([4], abs=2 * POLL_S)


def test_a_run_whose_warm_up_only_fails_measures_nothing_and_the_next_goes_on(stand: Stand) -> None:
    stand.collector.rate, stand.collector.fail_rate = 0, 1
    stand.conductor(a_run(HTTP), a_run(GRPC)).walk()
    ends = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert [end["status"] for end in ends] == ["failed", "failed"]
    assert ends[0]["note"] == "no request succeeded in the warm-up, so nothing was measured"
    kinds = ["run", "serving", "cold", "phase", "run"]
    assert [r["kind"] for r in stand.records()] == kinds * 2
    assert (stand.workers.asked[2], stand.spawned) == (("drain", {"patience_s": 70}), [(2,), (), (2,), ()])
    assert stand.sampler.told[1:4] == ["warm-up", "drain", "end"]


def test_a_phase_in_which_nothing_finishes_is_given_up(stand: Stand) -> None:
    stand.collector.rate = 0
    stand.conductor(a_run()).walk()
    (end,) = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert end["note"] == f"nothing finished for {60 + STALL_S:g} s in the warm-up, so it was abandoned"
    assert stand.workers.asked[-1][0] == "drain"
    assert stand.clock.now == pytest.approx(60 + STALL_S, abs=1)


def test_a_long_phase_in_which_something_finishes_goes_on_though_it_fails(stand: Stand) -> None:
    def fail() -> None:
        stand.collector.fail_rate = stand.collector.phases[-1][2] == "measure"
        stand.collector.rate = 1 - stand.collector.fail_rate
        stand.tick()

    stand.clock.on_tick = fail
    stand.conductor(a_run(seconds=100)).walk()
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
    ask = stand.workers.ask

    def one_cannot(op: str, data: Mapping[str, Any], patience_s: float) -> Answers:
        answers = ask(op, data, patience_s)
        answers.replies |= {"host2_b": {"error": "no user class for it"}} if op == "cell" else {}
        return answers

    stand.workers.ask = one_cannot  # type: ignore[method-assign]
    stand.conductor(a_run()).walk()
    assert stand.records()[-1]["note"] == "host2_b: no user class for it"


def test_a_cell_for_more_workers_than_there_are_fails_alone(stand: Stand) -> None:
    more = PlannedRun(replace(a_run().cell, topology=Topology(4)), 1)
    stand.conductor(more, a_run(GRPC)).walk()
    ends = [(r["status"], r["note"]) for r in stand.records() if r.get("event") == "end"]
    assert [status for status, _ in ends] == ["failed", "done"]
    assert "4 workers" in ends[0][1]


def test_a_dead_embedded_server_fails_its_runs_and_spares_the_others(stand: Stand) -> None:
    stand.dead.add("onnx")
    stand.conductor(a_run(HTTP), a_run(GRPC)).walk()
    ends = [r["status"] for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert ends == ["failed", "done"]


@pytest.mark.parametrize(
    ("most", "note"), [(1, "--max-in-flight 1: must be at least 1 for each of 2 workers"), (2, "")]
)
def test_more_workers_than_may_be_in_flight_is_refused(stand: Stand, most: int, note: str) -> None:
    rate = Cell(HTTP, 1, 50, 10, 0, "open", arrivals="constant", max_in_flight=most)
    stand.conductor(PlannedRun(rate, 1)).walk()
    assert stand.records()[-1]["note"] == note


@pytest.mark.parametrize("full_at", ["cell", "drain"])
def test_a_full_disk_ends_the_study(stand: Stand, full_at: str) -> None:
    def fill(op: str) -> None:
        if op == full_at:
            stand.collector.fault = "the ledger cannot be written (No space left on device)"

    stand.workers.on_ask = fill
    with pytest.raises(StudyError, match="No space left"):
        stand.conductor(a_run(), a_run(GRPC)).walk()
    assert [r["cell"] for r in stand.records() if r.get("event") == "start"] == ["a-http/b4/c2"]


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
    assert stand.workers.asked[-1] == ("drain", {"patience_s": PARTING_S})
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
    stand.settings, stand.collector.steady_after = {2: ""}, 200
    stand.first_calls.known(HTTP, 4, 9_000)
    stand.conductor(a_run(GRPC), on(1), on(2), on(1), a_run(GRPC)).walk()
    assert stand.set == [0, 1, 2, 1, 0]
    cold = [r for r in stand.records() if r["kind"] == "cold" and r["endpoint"] == HTTP.name]
    assert [(r["first_ns"], r.get("reloaded", False)) for r in cold] == [
        (9_000, False),
        (4_000_000, True),
    ]
    kinds = [r["kind"] for r in stand.records() if r.get("cell") == "a-http/b4/c2/2-instances"]
    assert kinds[:2] == ["run", "serving"], "what the server says of itself is read after it was set"
    expected = [WHOLE_S, WHOLE_S, WHOLE_S, RAMPED_S, RAMPED_S]
    assert lasted(stand, "warm-up") == pytest.approx(expected, abs=3 * POLL_S)


def test_a_server_that_cannot_be_set_fails_its_run_alone(stand: Stand) -> None:
    stand.settings = {2: "its server cannot be configured for this cell: no"}
    stand.conductor(on(2), on(1)).walk()
    ends = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert [(r["status"], r["note"]) for r in ends] == [
        ("failed", "its server cannot be configured for this cell: no"),
        ("done", ""),
    ]
    cells = [cell["cell"] for op, data in stand.workers.asked if op == "cell" for cell in data["cells"]]
    assert cells == ["a-http/b4/c2/1-instances"]


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
    assert [(r["code"], r["text"]) for r in stand.records() if r["kind"] == "caveat"] == [
        ("results-lost", "host1_a: OSError: [Errno 24] Too many open files"),
        ("results-lost", "host2_b: OSError: [Errno 24] Too many open files"),
        ("users-missing", "0 of 2 users finished a request"),
    ]
    assert [r["status"] for r in stand.records() if r.get("event") == "end"] == ["done"]
