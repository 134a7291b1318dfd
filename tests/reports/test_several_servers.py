"""Replicas behind one address and the steps of an ensemble, from the ledger's records to the limit."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.fold.run_records import Second
from reports.fold.timeline import second_of
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import Record, sample_line, triton
from tests.reports.study.test_fold import MS, codes, folded, text_of

LOADS = {"w0": [10 * MS] * 100}
"""One user, a second."""


def read(book: Book, tag: Record, identities: str, counts: list[int] | None = None) -> None:
    """Lets the readings before, in each second, and after be of these servers."""
    first, *between, last = identities
    before, after = (record for record in book.of(tag) if record["kind"] == "server")
    before |= {"identity": first}
    after |= {"identity": last}
    for second, identity in enumerate(between):
        told = {"server": {"requests": 1_010 + second if counts is None else counts[second]}}
        line = {"kind": "sample", **tag, "phase": "measure", "second": second, "identity": identity}
        book.records.append(line | told)


def one_run(folder: Path, identities: str = "", counters: Record | None = None, **told: Any) -> Summary:
    book = Book()
    tag = book.add(
        "onnx-http", 1, 1, LOADS, counters=triton(100, 1, 8 * MS) if counters is None else counters
    )
    book.serving(tag, **told)
    if identities:
        read(book, tag, identities)
    return folded(book, folder)


def test_one_server(tmp_path: Path) -> None:
    run = one_run(tmp_path, "aaaaa")
    assert (run.server.several, run.server.busy) == ("", pytest.approx(0.8))
    assert not {"several-servers", "server-lost"} & set(codes(run))


def test_readings_of_two_servers_in_turn_are_no_restart(tmp_path: Path) -> None:
    run = one_run(tmp_path, "abab")
    assert text_of(run, "several-servers") == ("2 servers answered when the counters were read (a, b)")
    assert "server-lost" not in codes(run)
    assert (run.tainted, run.server.total_ns, run.server.busy) == (False, None, None)


def test_the_difference_between_two_readings_of_one_of_them_stands(tmp_path: Path) -> None:
    run = one_run(tmp_path, "abba")
    assert run.server.compute_ns == 8 * MS
    assert (run.server.busy, run.tainted) == (None, False)
    assert "several-servers" in codes(run)


def test_an_identity_that_changed_for_good_restarted(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, LOADS, counters=triton(100, 1, 8 * MS) | {"requests": -950})
    read(book, tag, "aabb", [1_020, 10])
    run = folded(book, tmp_path)
    assert "server-lost" in codes(run)
    assert run.tainted


def test_a_second_between_readings_of_two_servers_is_not_shown() -> None:
    planned = {"cell": "a/b1/c1", "repeat": 1, "endpoint": "a"}
    tag = {"cell": "a/b1/c1", "repeat": 1}
    old, new = triton(10, 1, MS), triton(15, 1, 2 * MS)
    shown = []
    for identity in "ab":
        samples = {
            1: [sample_line(tag, 1, server=old, identity="a")],
            2: [sample_line(tag, 2, server=new, identity=identity)],
        }
        shown.append(second_of(planned, 2, (), Second(), samples).server_compute_ns)
    assert shown == [4 * MS, None]


def test_a_server_that_counted_half_of_the_requests(tmp_path: Path) -> None:
    run = one_run(tmp_path, counters=triton(50, 1, 8 * MS))
    assert text_of(run, "several-servers").startswith("the server counted only 50 of 100 requests")
    assert (run.server.compute_ns, run.server.busy, run.tainted) == (8 * MS, None, False)
    assert run.limit is not None
    assert (run.limit.code, "several servers may stand" in run.limit.evidence) == ("inconclusive", True)


def test_one_request_that_was_not_counted_leaves_how_busy_it_was(tmp_path: Path) -> None:
    run = one_run(tmp_path, counters=triton(99, 1, 8 * MS))
    assert run.server.busy == pytest.approx(0.792)
    assert "several-servers" in codes(run)


def test_four_replicas_that_state_their_times_with_each_answer(tmp_path: Path) -> None:
    """Eight users of four pods that are half idle: together they compute for two seconds in one."""
    book = Book()
    tag = book.add("pytorch-http", 1, 8, {"w0": [40 * MS] * 200})
    book.server_timing(tag, queue=0, compute=10 * MS)
    book.serving(tag)
    run = folded(book, tmp_path)
    assert run.server.busy is None
    assert text_of(run, "several-servers") == (
        "executions took 2.00 times the time of its one instance: several servers may stand behind this "
        "address, or it has more instances than it says"
    )
    assert (run.server.compute_ns, run.tainted) == (10 * MS, False)


def test_an_execution_that_had_begun_before_is_no_second_server(tmp_path: Path) -> None:
    """Two executions of 0.6 s in a second."""
    book = Book()
    counters = triton(2, 1, 600 * MS) | {"batches": {"1": [2, 1_200 * MS, 1, 600 * MS]}}
    book.serving(book.add("onnx-http", 1, 1, {"w0": [500 * MS] * 2}, counters=counters))
    run = folded(book, tmp_path)
    assert (run.server.busy, run.server.several) == (1.0, "")


def test_a_service_of_kubernetes_tells_that_it_is_several(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("pytorch-http", 1, 1, LOADS)
    book.server_timing(tag, queue=0, compute=8 * MS)
    book.serving(tag)
    why = "the URL is a Service of several pods"
    for when in ("before", "after"):
        book.records.append({"kind": "server", **tag, "when": when, "error": why, "error_kind": "several"})
    run = folded(book, tmp_path)
    assert (text_of(run, "several-servers"), run.server.busy, run.server.compute_ns) == (why, None, 8 * MS)


def steps(**counted: tuple[int, int, int, int]) -> Record:
    """Successes, executions, and milliseconds of queue and of executions by step."""
    found: Record = {}
    for name, (successes, executions, queue_ms, executing_ms) in counted.items():
        times = {"queue_ns": queue_ms * MS, "executing_ns": executing_ms * MS}
        times |= {"work_ns": successes * executing_ms * MS // max(1, executions)}
        found[name] = {"successes": successes, "executions": executions} | times
    return found


def ensemble(folder: Path, first: Record, last: Record, **told: Any) -> Summary:
    """Eight users, a second, of an ensemble whose steps counted so."""
    book = Book()
    counters = triton(50, 1, 7 * MS, queue_ns=125 * MS) | {"decode_ns": 50 * 20 * MS}
    counters["batches"] = {"1": [50, 370 * MS, 1, 7 * MS]}
    tag = book.add("onnx-jpeg-http", 1, 8, {"w0": [160 * MS] * 50}, counters=counters)
    book.serving(tag, **told)
    before, after = (record["counters"] for record in book.of(tag) if record["kind"] == "server")
    before["steps"], after["steps"] = first, last
    return folded(book, folder)


FIRST = steps(decode_jpeg=(10, 10, 30, 200), clip=(10, 5, 10, 70))
LAST = steps(decode_jpeg=(60, 60, 6_230, 1_190), clip=(60, 55, 110, 440))


def test_each_step_has_its_own_queue_and_its_own_share(tmp_path: Path) -> None:
    run = ensemble(tmp_path, FIRST, LAST, steps={"decode_jpeg": 1, "clip": 1})
    decode, clip = run.server.steps.values()
    assert [*run.server.steps] == ["decode_jpeg", "clip"]
    assert (decode.queue_ns, decode.instances, decode.busy) == (124 * MS, 1, pytest.approx(0.99))
    assert (clip.queue_ns, clip.busy) == (2 * MS, pytest.approx(0.37))
    assert run.limit is not None
    assert run.limit.code == "server-preprocess"
    assert "for the step decode_jpeg" in run.limit.evidence


def test_the_steps_are_in_study_json(tmp_path: Path) -> None:
    ensemble(tmp_path, FIRST, LAST, steps={"decode_jpeg": 1, "clip": 1})
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    (run,) = json.loads((tmp_path / "study.json").read_text())["runs"]
    assert run["server_steps"]["decode_jpeg"] == {
        "queue_ns": 124 * MS, "work_ns": pytest.approx(19.8 * MS), "executing_ns": 990 * MS,
        "executions": 50, "instances": 1, "busy": pytest.approx(0.99),
    }  # fmt: skip


@pytest.mark.parametrize("told", [None, {"decode_jpeg": None, "clip": 1}, {"clip": 1}])
def test_a_step_whose_instances_are_not_known(tmp_path: Path, told: Record | None) -> None:
    run = ensemble(tmp_path, FIRST, LAST, steps=told)
    assert run.server.steps["decode_jpeg"].busy is None
    assert run.limit is not None
    assert (run.limit.code, "for the step decode_jpeg" in run.limit.evidence) == ("server-preprocess", True)


def test_a_step_that_began_anew_is_left_out(tmp_path: Path) -> None:
    run = ensemble(tmp_path, LAST | {"clip": FIRST["clip"]}, LAST | {"decode_jpeg": FIRST["decode_jpeg"]})
    assert [*run.server.steps] == ["clip"]


def test_without_executions_by_size_a_step_that_shared_none_is_known(tmp_path: Path) -> None:
    first, last = ({name: {**told} for name, told in read.items()} for read in (FIRST, LAST))
    for told in (*first.values(), *last.values()):
        del told["executing_ns"]
    run = ensemble(tmp_path, first, last, steps={"decode_jpeg": 1, "clip": 1})
    assert run.server.steps["decode_jpeg"].busy == pytest.approx(0.99)


def test_an_older_ledger_knows_of_no_steps(tmp_path: Path) -> None:
    run = ensemble(tmp_path, {}, {})
    assert run.server.steps == {}
    assert run.limit is not None
