"""The forms of our own messages: those that we send have them, and others do not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from swarm.distributed import protocol
from swarm.distributed.collector import Collector
from swarm.distributed.protocol import PROGRESS, RECORDS, REPLY
from swarm.distributed.raw_results import packed
from swarm.distributed.recorder import Recorder
from swarm.distributed.shipper import WorkerHealth
from swarm.distributed.worker import NOTHING_DONE
from swarm.distributed.workers import Workers
from tests.swarm.fakes import FakeRunner
from users.errors import ErrorKind, RequestError
from users.result import Result

OF_RUN = {"cell": "a/b1/c1", "repeat": 0, "phase": "measure"}
WINDOW = {**OF_RUN, "kind": "window", "second": 1, "ok": 0, "failures": {"timeout": 1}, "histograms": {}}


def result(error: RequestError | None = None) -> Result:
    now = time.perf_counter_ns()
    values: dict[str, Any] = dict.fromkeys(Result._fields, 1) | OF_RUN
    values |= {"intended_ns": now, "start_ns": now + 5, "end_ns": now + 1_000_000, "phases_ns": {"send": 5}}
    return Result(**{**values, "server_ns": {}, "error": error, "abandoned": False, "request_id": ""})


def test_what_workers_send_has_the_forms() -> None:
    recorder, found = Recorder(), [result(), result(RequestError(ErrorKind.TIMEOUT, "late"))]
    for one in found:
        recorder.add(one)
    health = WorkerHealth()
    of_health = {**OF_RUN, "kind": "health", "second": 1, **health.take()}
    path = {**OF_RUN, "kind": "path", "second": 1, "connections": 3}
    rows = packed(found, 0)
    message = {"records": [*recorder.take_all(), of_health, path], "raw": rows}
    assert len(message["records"]) == 3
    assert protocol.are_records(message)
    assert protocol.is_parting(NOTHING_DONE)
    assert protocol.is_reply({"seq": 1, **NOTHING_DONE})


@pytest.mark.parametrize(
    "record",
    [
        5,
        {},
        {**WINDOW, "kind": "footer"},
        {**WINDOW, "kind": ["window"]},
        {**WINDOW, "cell": None},
        {**WINDOW, "second": "1"},
        {**WINDOW, "ok": True},
        {**WINDOW, "ok": -1},
        {**WINDOW, "ok": 1},
        {**WINDOW, "failures": {"timeout": "1"}},
        {**WINDOW, "histograms": {"latency": "<script>"}},
        {**WINDOW, "histograms": []},
    ],
)
def test_a_record_of_another_form_reaches_no_ledger(record: Any, caplog: pytest.LogCaptureFixture) -> None:
    runner, seen = FakeRunner(), list[Any]()
    collector = Collector(runner, lambda worker: worker)  # type: ignore[arg-type]
    collector.begin_phase(WINDOW["cell"], WINDOW["repeat"], "measure")
    collector.listeners.append(seen.append)
    runner.deliver(RECORDS, {"records": [record], "raw": []}, "evil")
    runner.deliver(RECORDS, {"records": [record], "raw": []}, "evil")
    assert seen == []
    assert caplog.messages == [
        "a malformed swarm-records message of 'evil': dropped; further ones are dropped without a message"
    ]
    runner.deliver(RECORDS, {"records": [WINDOW], "raw": []}, "w")
    assert [record["worker"] for record in seen] == ["w"]


def test_rows_must_be_as_long_as_each_other_and_whole() -> None:
    (rows,) = packed([result()], 0)
    assert protocol.are_rows(rows)
    columns = dict(rows["columns"])
    late = {**columns, "service_ns": ["1"]}
    for wrong in ({**columns, "user": []}, {**columns, "user": 5}, late, {"user": [1]}, [], None):
        assert not protocol.are_rows({**rows, "columns": wrong})


def test_progress_and_replies_of_another_form_change_nothing() -> None:
    runner = FakeRunner()
    collector = Collector(runner, str)  # type: ignore[arg-type]
    collector.begin_phase("a/b1/c1", 0, "measure")
    for data in (None, {}, {**OF_RUN, "ok": "9", "failed": 0}, {**OF_RUN, "ok": 1}):
        runner.deliver(PROGRESS, data, "evil")  # type: ignore[arg-type]
    assert collector.ok == 0
    runner.deliver(PROGRESS, {**OF_RUN, "ok": 9, "failed": 0}, "w")
    assert collector.ok == 9


def test_a_drain_needs_its_figures() -> None:
    runner = FakeRunner()
    workers = Workers(runner, print)  # type: ignore[arg-type]

    def send(kind: str, data: dict[str, Any], worker: str | None) -> None:
        runner.deliver(REPLY, {"seq": data["seq"], "users": 1}, "evil")
        runner.deliver(REPLY, {"seq": data["seq"], **NOTHING_DONE}, "local")

    runner.send_message = send  # type: ignore[assignment,method-assign]
    assert set(workers.ask("drain", {"patience_s": 0}, 5).replies) == {"local"}
