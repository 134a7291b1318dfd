"""The forms of our own messages: those that we send have them, and others do not."""

import math
import time
from typing import Any

import pytest

from reports.histogram import codec
from reports.ledger.ledger import tag_of
from swarm.distributed import protocol
from swarm.distributed.collector import Collector
from swarm.distributed.protocol import RECORDS, REPLY
from swarm.distributed.raw_results import packed
from swarm.distributed.recorder import Recorder
from swarm.distributed.shipper import WorkerHealth
from swarm.distributed.workers import Workers
from tests.swarm.fakes import NOTHING_DONE, FakeRunner
from users.errors import ErrorKind, RequestError
from users.result import Result

SECOND_NS = time.perf_counter_ns() // 1_000_000_000 * 1_000_000_000
"""The start of one: results made of it are of one second."""
OF_RUN = {"cell": "a/b1/c1", "repeat": 0, "phase": "measure"}
TIMES = ("latency", "service_time", "send_delay")
HISTOGRAM = codec.encoded_ns([5, 6])[0]
HEALTH = {**OF_RUN, "kind": "health", "second": 1, "cpu_pct": 9.5, "lag": HISTOGRAM}
WINDOW = {**OF_RUN, "kind": "window", "second": 1, "ok": 0, "failures": {"timeout": 1}, "histograms": {}}


def result(error: RequestError | None = None) -> Result:
    now = SECOND_NS
    values: dict[str, Any] = dict.fromkeys(Result._fields, 1) | OF_RUN
    values |= {"intended_ns": now, "start_ns": now + 5, "end_ns": now + 1_000_000, "phases_ns": {"send": 5}}
    values |= {
        "server_ns": {},
        "error": error,
        "abandoned": False,
        "request_id": "",
        "request_class": "",
        "trace_id": "",
    }
    return Result(**values)


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
    assert protocol.is_parting({"parts": [NOTHING_DONE]})
    assert protocol.is_reply({"seq": 1, "parts": [NOTHING_DONE] * 2})


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
        {**WINDOW, "failures": {"timeout": -1}},
        {**WINDOW, "failures": {"made-up": 1}},
        {**WINDOW, "repeat": True},
        {**WINDOW, "phase": None},
        {**WINDOW, "late": math.inf},
        {**WINDOW, "server_ns": {"compute": math.nan}},
        {**WINDOW, "ok": 1, "histograms": dict.fromkeys(TIMES, HISTOGRAM)},
        {**HEALTH, "cpu_pct": math.nan},
        {**HEALTH, "cpu_pct": "9"},
        {**HEALTH, "lag": 5},
        {**OF_RUN, "kind": "path", "second": None},
        {**WINDOW, "histograms": {"latency": "<script>"}},
        {**WINDOW, "histograms": []},
    ],
)
def test_a_record_of_another_form_reaches_no_ledger(record: Any, caplog: pytest.LogCaptureFixture) -> None:
    runner, seen = FakeRunner(), list[Any]()
    collector = Collector(runner, lambda worker: worker)  # type: ignore[arg-type]
    collector.begin_phase([tag_of(WINDOW)], "measure")
    collector.listeners.append(seen.append)
    runner.deliver(RECORDS, {"records": [record], "raw": []}, "evil")
    runner.deliver(RECORDS, {"records": [record], "raw": []}, "evil")
    assert seen == []
    assert caplog.messages == [
        "a malformed swarm-records message of 'evil': dropped; further ones are dropped without a message"
    ]
    runner.deliver(RECORDS, {"records": [WINDOW, HEALTH], "raw": []}, "w")
    assert [record["worker"] for record in seen] == ["w", "w"]


def test_rows_must_be_as_long_as_each_other_and_whole() -> None:
    (rows,) = packed([result()], 0)
    assert protocol.are_rows(rows)
    columns = dict(rows["columns"])
    late = {**columns, "service_ns": ["1"]}
    strange = [{**columns, "trace_id": [of]} for of in ("0af7", "A" * 32, 5, None, "0" * 33)]
    for wrong in ({**columns, "user": []}, {**columns, "user": 5}, late, {"user": [1]}, [], None, *strange):
        assert not protocol.are_rows({**rows, "columns": wrong})


def test_requests_with_a_traceparent_have_the_form_of_others() -> None:
    rows = packed([result()._replace(trace_id="0af7651916cd43dd8448eb211c80319c")], 0)
    nothing = {"records": [], "raw": []}
    assert protocol.are_records({**nothing, "traced": rows, "untold": 3})
    for wrong in ({"traced": rows}, {"traced": rows, "untold": -1}, {"traced": [5], "untold": 0}):
        assert not protocol.are_records({**nothing, **wrong})


PROGRESS_OF = {**OF_RUN, "ok": 9, "failed": 0}


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        (
            protocol.is_progress,
            [PROGRESS_OF],
            [
                None,
                {},
                *(PROGRESS_OF | {"ok": n} for n in ("9", True, -1, 1.5)),
                PROGRESS_OF | {"failed": -1},
            ],
        ),
        (
            protocol.is_parting,
            [{"parts": parts} for parts in ([], [NOTHING_DONE], [NOTHING_DONE | {"users_ns": 2.5}] * 2)],
            [
                *({}, NOTHING_DONE, {"parts": NOTHING_DONE}, {"parts": [{}]}, {"parts": [NOTHING_DONE, 5]}),
                *({"parts": [NOTHING_DONE | {"users": value}]} for value in ("3", True, math.nan)),
            ],
        ),
        (
            protocol.is_reply,
            [{"seq": 1}, {"seq": 1, "error": "no"}],
            [5, {}, {"seq": "1"}, {"seq": 1, "error": 5}, {"seq": 1, "of": [{"a": math.inf}]}],
        ),
        (protocol.is_hello, [{}, {"host": "far"}], [None, [], {"host": 5}]),
        (protocol.is_question, [{"op": "drain", "seq": 1}], [{"op": "drain"}, {"op": 5, "seq": 1}]),
    ],
)
def test_messages_of_the_form_and_others(form: protocol.Form, right: list[Any], wrong: list[Any]) -> None:
    assert list(map(form, [*right, *wrong])) == [True] * len(right) + [False] * len(wrong)


def test_a_drain_needs_its_figures() -> None:
    runner = FakeRunner()
    workers = Workers(runner, print)  # type: ignore[arg-type]

    def send(kind: str, data: dict[str, Any], worker: str | None) -> None:
        runner.deliver(REPLY, {"seq": data["seq"], "parts": [{"users": 1}]}, "evil")
        runner.deliver(REPLY, {"seq": data["seq"], "parts": [NOTHING_DONE]}, "local")

    runner.send_message = send  # type: ignore[assignment,method-assign]
    assert set(workers.ask("drain", {"patience_s": 0}, 5).replies) == {"local"}
