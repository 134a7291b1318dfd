"""Workers that are lost, fall silent, go missing or come late, and what becomes of the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.ledger.axes import Topology
from swarm.errors import StudyError
from tests.swarm.stand import GRPC, Stand, a_run


def test_a_lost_worker_is_a_caveat_and_the_run_goes_on(stand: Stand) -> None:
    def lose_one() -> None:
        stand.tick()
        stand.workers.present = ["host1_a"]

    stand.clock.on_tick = lose_one
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    caveats = [r for r in stand.records() if r["kind"] == "caveat"]
    assert [(c["code"], c["text"]) for c in caveats] == [("worker-lost", "worker w1 was lost")]
    assert stand.records()[-1]["status"] == "done"
    assert stand.workers.sent_home == ["host2_b"]


def test_the_users_of_a_lost_worker_are_brought_back_on_the_others(stand: Stand) -> None:
    def lose_one() -> None:
        stand.tick()
        if stand.collector.phases[-1][2] == "measure":
            stand.workers.present = ["host1_a"]

    stand.clock.on_tick = lose_one
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.spawned == [2, 2, 0]
    assert [op for op, _ in stand.workers.asked] == [
        *("cell", "phase", "mark", "phase", "share", "cool_down", "drain"),
    ]


def test_the_users_of_a_worker_lost_while_it_was_asked_are_brought_back_too(stand: Stand) -> None:
    stand.workers.loses = {"phase": "host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.spawned == [2, 2, 0]
    assert "share" in [op for op, _ in stand.workers.asked]
    assert [r["code"] for r in stand.records() if r["kind"] == "caveat"] == ["worker-lost"]


def test_one_that_went_missing_before_the_run_has_no_part_in_it(stand: Stand) -> None:
    stand.workers.missing = {"host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.records()[0]["workers"] == ["w0"]
    assert [r for r in stand.records() if r["kind"] == "caveat"] == []


def test_a_newcomer_has_time_to_be_heard_of(stand: Stand) -> None:
    def join_late() -> None:
        stand.tick()
        if stand.collector.phases[-1][2] == "measure" and stand.clock() > 5:
            stand.workers.present = ["host1_a", "host2_b", "host3_c"]

    stand.clock.on_tick = join_late
    stand.silent = {"host3_c"}
    stand.conductor(a_run(seconds=6.5, level=3)).walk()
    assert [r["code"] for r in stand.records() if r["kind"] == "caveat"] == ["worker-joined"]
    assert stand.workers.sent_home == []


def test_a_worker_that_falls_silent_is_lost_though_locust_still_counts_it(stand: Stand) -> None:
    stand.silent = {"host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run(seconds=10)).walk()
    (caveat,) = [r for r in stand.records() if r["kind"] == "caveat"]
    assert caveat["code"] == "worker-lost"
    assert stand.workers.sent_home == ["host2_b"]


def test_a_master_that_could_not_listen_blames_no_worker(stand: Stand) -> None:
    def pause() -> None:
        stand.clock.now += 30
        stand.collector.tick()

    stand.clock.on_tick = pause
    stand.conductor(a_run(seconds=100)).walk()
    assert [r for r in stand.records() if r["kind"] == "caveat"] == []


def test_a_worker_that_comes_in_the_middle_makes_the_run_doubtful_and_joins_the_next(stand: Stand) -> None:
    def join() -> None:
        stand.tick()
        stand.workers.present = ["host1_a", "host2_b", "host3_c"]

    stand.clock.on_tick = join
    stand.conductor(a_run(level=3), a_run(GRPC, level=3)).walk()
    codes = [r["code"] for r in stand.records() if r["kind"] == "caveat"]
    assert codes == ["worker-joined"]
    starts = [r["workers"] for r in stand.records() if r["kind"] == "run" and r["event"] == "start"]
    assert starts == [["w0", "w1"], ["w0", "w1", "w2"]]


def test_where_a_cell_loses_its_only_worker_the_next_cells_go_on_with_the_others(stand: Stand) -> None:
    alone = replace(a_run(), cell=replace(a_run().cell, topology=Topology(1)))

    def lose_the_first() -> None:
        stand.tick()
        stand.workers.present = ["host2_b"]

    stand.clock.on_tick = lose_the_first
    stand.conductor(alone, replace(alone, repeat=2)).walk()
    ends = [r for r in stand.records() if r["kind"] == "run" and r["event"] == "end"]
    assert [(r["repeat"], r["status"]) for r in ends] == [(1, "failed"), (2, "done")]
    assert ends[0]["note"].startswith("all its workers are lost")
    starts = [r["workers"] for r in stand.records() if r["kind"] == "run" and r["event"] == "start"]
    assert starts == [["w0"], ["w1"]]


def test_a_stray_worker_makes_the_run_doubtful_and_users_come_back_to_their_own(stand: Stand) -> None:
    stand.workers.strays = ["w3"]
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.spawned == [2, 2, 0]
    (caveat,) = [r for r in stand.records() if r["kind"] == "caveat"]
    assert (caveat["code"], caveat["text"]) == (
        "worker-joined",
        "worker w3 connected during a cell for other workers: dismissed",
    )


def test_without_any_worker_the_study_ends(stand: Stand) -> None:
    def lose_all() -> None:
        stand.workers.present = []

    stand.clock.on_tick = lose_all
    with pytest.raises(StudyError, match="all its workers are lost, and there is no other"):
        stand.conductor(a_run()).walk()
