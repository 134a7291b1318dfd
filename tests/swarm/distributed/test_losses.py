"""Workers that are lost, fall silent, go missing or come late, and what becomes of the run."""

from dataclasses import replace

import pytest

from reports.ledger.axes import Topology
from swarm.errors import StudyError
from tests.swarm.stand import GRPC, Stand, a_run


def caveats(stand: Stand) -> list[tuple[str, str]]:
    return [(record["code"], record["text"]) for record in stand.records() if record["kind"] == "caveat"]


def become(stand: Stand, *present: str, phase: str = "", after_s: float = 0) -> None:
    """These workers alone are there from the first tick on, or from a later one of that phase."""

    def change() -> None:
        stand.tick()
        if (
            stand.collector.phases[-1][2] == (phase or stand.collector.phases[-1][2])
            and stand.clock() > after_s
        ):
            stand.workers.present = list(present)

    stand.clock.on_tick = change


def test_a_lost_worker_is_a_caveat_and_the_run_goes_on(stand: Stand) -> None:
    become(stand, "host1_a")
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert caveats(stand) == [("worker-lost", "worker w1 was lost")]
    assert stand.records()[-1]["status"] == "done"
    assert stand.workers.sent_home == ["host2_b"]


def test_the_users_of_a_lost_worker_are_brought_back_on_the_others(stand: Stand) -> None:
    become(stand, "host1_a", phase="measure")
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.spawned == [(2,), (2,), ()]
    assert [op for op, _ in stand.workers.asked] == [
        *("cell", "phase", "mark", "phase", "share", "cool_down", "drain"),
    ]


def test_the_users_of_a_worker_lost_while_it_was_asked_are_brought_back_too(stand: Stand) -> None:
    stand.workers.loses = {"phase": "host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.spawned == [(2,), (2,), ()]
    assert "share" in [op for op, _ in stand.workers.asked]
    assert caveats(stand) == [("worker-lost", "worker w1 was lost")]


def test_one_that_went_missing_before_the_run_has_no_part_in_it(stand: Stand) -> None:
    stand.workers.missing = {"host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run()).walk()
    assert stand.records()[0]["workers"] == ["w0"]
    assert caveats(stand) == []


def test_a_newcomer_has_time_to_be_heard_of(stand: Stand) -> None:
    become(stand, "host1_a", "host2_b", "host3_c", phase="measure", after_s=5)
    stand.silent = {"host3_c"}
    stand.conductor(a_run(seconds=6.5, level=3)).walk()
    assert [code for code, _ in caveats(stand)] == ["worker-joined"]
    assert stand.workers.sent_home == []


def test_a_worker_that_falls_silent_is_lost_though_locust_still_counts_it(stand: Stand) -> None:
    stand.silent = {"host2_b"}
    stand.workers.users = 2
    stand.conductor(a_run(seconds=10)).walk()
    assert caveats(stand) == [("worker-lost", "worker w1 was lost")]
    assert stand.workers.sent_home == ["host2_b"]


def test_a_master_that_could_not_listen_blames_no_worker(stand: Stand) -> None:
    def pause() -> None:
        stand.clock.now += 30
        stand.collector.tick()

    stand.clock.on_tick = pause
    stand.conductor(a_run(seconds=100)).walk()
    assert caveats(stand) == []


def test_a_worker_that_comes_in_the_middle_makes_the_run_doubtful_and_joins_the_next(stand: Stand) -> None:
    become(stand, "host1_a", "host2_b", "host3_c")
    stand.conductor(a_run(level=3), a_run(GRPC, level=3)).walk()
    assert [code for code, _ in caveats(stand)] == ["worker-joined"]
    starts = [r["workers"] for r in stand.records() if r["kind"] == "run" and r["event"] == "start"]
    assert starts == [["w0", "w1"], ["w0", "w1", "w2"]]


def test_where_a_cell_loses_its_only_worker_the_next_cells_go_on_with_the_others(stand: Stand) -> None:
    alone = replace(a_run(), cell=replace(a_run().cell, topology=Topology(1)))
    become(stand, "host2_b")
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
    assert stand.spawned == [(2,), (2,), ()]
    said = "worker w3 connected during a cell for other workers: dismissed"
    assert caveats(stand) == [("worker-joined", said)]


def test_without_any_worker_the_study_ends(stand: Stand) -> None:
    become(stand)
    with pytest.raises(StudyError, match="all its workers are lost, and there is no other"):
        stand.conductor(a_run()).walk()
