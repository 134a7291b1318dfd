"""What a worker ships of a second: its windows and health, and the path of its connections, by phase."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.pool import Group

from reports.ledger.records import check_record
from swarm.distributed import shipper
from swarm.distributed.protocol import PROGRESS, RECORDS
from swarm.distributed.recorder import Recorder
from swarm.distributed.shipper import RAW_AT_ONCE, SHIP_EVERY_S, Shipper, ticks_between
from swarm.distributed.tcp_stats import Connections
from tests.presets import preset
from tests.stand_ins import stand_in
from tests.swarm.fakes import FakeRunner
from tests.swarm.kernel import Kernel, info_of
from tests.users.ways import IMAGES, codec_at
from users.backends.registry import codec_of
from users.codecs.v2_grpc import V2Grpc
from users.errors import ErrorKind, RequestError
from users.http2.figures import FIGURES
from users.load.assignment import Assignment
from users.result import Result
from users.transport.transports import client


class ShippingRunner(FakeRunner):
    """With a place for greenlets, none of which gets a turn in these tests."""

    def __init__(self) -> None:
        super().__init__()
        self.greenlet = Group()

    def records(self, kind: str) -> list[dict[str, Any]]:
        shipped = [data["records"] for message, data, _ in self.sent if message == RECORDS]
        return [record for records in shipped for record in records if record["kind"] == kind]

    def wait_for(self, health: int) -> list[dict[str, Any]]:
        """So many records of health, once they are there."""
        with gevent.Timeout(10):
            while len(found := self.records("health")) < health:
                gevent.sleep(0.01)
        return found


class PlayedRecorder(Recorder):
    """In the second that a test says."""

    at = 1_000

    def second(self, at_ns: int) -> int:
        return self.at


def assignment(cell: str, address: str, **fields: Any) -> Assignment:
    """Of a cell at a server of its own."""
    return Assignment(codec_of(preset("onnx-grpc", address, "m")), [], 1.0, cell=cell, repeat=3, **fields)


class Ship:
    """A shipping on a kernel that the test plays."""

    def __init__(self) -> None:
        self.runner, self.kernel, self.recorder = ShippingRunner(), Kernel(), PlayedRecorder()
        self.made_ns = time.perf_counter_ns()
        self.shipping = Shipper(self.runner, self.recorder)  # type: ignore[arg-type]
        self.assignment = assignment("onnx-grpc/b1/c2", "h:8011", users=2, connections=2)
        self.shipping.assignments = [self.assignment]

    def path(self) -> list[dict[str, Any]]:
        return self.runner.records("path")

    def end(self, user: int, **changed: Any) -> None:
        """A request of the measure phase ends."""
        now_ns = time.perf_counter_ns()
        made = Result("onnx-grpc/b1/c2", 3, "measure", user, 1, now_ns, now_ns, now_ns + 1_000, 10)
        self.recorder.add(made._replace(**changed))


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ship]:
    kernels: list[Kernel] = []

    def connections() -> Connections:
        return Connections(lambda port: kernels[0](port))

    monkeypatch.setattr(shipper, "Connections", connections)
    made = Ship()
    kernels.append(made.kernel)
    yield made
    made.runner.greenlet.kill()


def test_a_phases_path(ship: Ship) -> None:
    ship.kernel.seen = {"a": info_of(bytes_sent=1000)}
    ship.shipping.begin_path("measure")
    ship.kernel.seen = {"a": info_of(bytes_sent=4000), "b": info_of(bytes_sent=50)}
    ship.shipping.end_path()
    (record,) = ship.path()
    assert ship.kernel.ports == [8011, 8011]
    assert (record["cell"], record["repeat"], record["phase"]) == ("onnx-grpc/b1/c2", 3, "measure")
    assert (record["asked"], record["connections"], record["bytes_sent"]) == (2, 2, 3050)
    assert isinstance(record["second"], int)
    assert record["span_ns"] > 0


def test_what_comes_between_phases_belongs_to_none(ship: Ship) -> None:
    ship.shipping.end_path()
    ship.shipping.begin_path("warm-up")
    ship.shipping.end_path()
    assert ship.path() == [], "no connections make no record"
    ship.shipping.begin_path("warm-up")
    ship.kernel.seen = {"a": info_of(bytes_sent=10)}
    ship.shipping.end_path()
    ship.kernel.seen = {"a": info_of(bytes_sent=600)}
    ship.shipping.end_path()
    ship.shipping.begin_path("measure")
    ship.kernel.seen = {"a": info_of(bytes_sent=601)}
    ship.shipping.end_path()
    assert [(record["phase"], record["bytes_sent"]) for record in ship.path()] == [
        ("warm-up", 10),
        ("measure", 1),
    ]


@pytest.fixture
def send() -> Iterator[Callable[[int], None]]:
    """Sends so many requests over a connection of our own gRPC, which has been there for one."""
    with stand_in("fake_triton.py") as address:
        codec = codec_at(V2Grpc, address)
        prepared = codec.prepare(IMAGES, (0,))
        with client(codec, 30) as user:
            user.send(prepared)
            yield lambda times: [user.send(prepared) for _ in range(times)].clear()


@pytest.mark.system
def test_a_phases_path_over_our_own_grpc(ship: Ship, send: Callable[[int], None]) -> None:
    ship.kernel.seen = {"a": info_of()}
    for phase, times in [("warm-up", 2), ("measure", 4)]:
        send(5)
        FIGURES.counts.update(goaways=3)
        ship.shipping.begin_path(phase)
        send(times)
        ship.shipping.end_path()
    first, second = ship.path()
    assert check_record(first) is None
    assert (first["http2"]["connections"], first["http2"]["streams"]) == (1, 1)
    sent = [record["http2"]["frames_sent"] for record in (first, second)]
    assert 4 <= sent[0] < sent[1] < 3 * sent[0], "each has its own phase's"
    assert [record["http2"]["goaways"] for record in (first, second)] == [0, 0], "none from between them"


@pytest.mark.system
def test_what_was_sent_without_a_record_is_in_the_next(ship: Ship, send: Callable[[int], None]) -> None:
    ship.shipping.begin_path("measure")
    FIGURES.counts.update(goaways=1)
    ship.shipping._send_second(1)
    ship.kernel.seen = {"a": info_of()}
    for second in (2, 3):
        send(1)
        ship.shipping._send_second(second)
    assert [(record["second"], record["http2"]["goaways"]) for record in ship.path()] == [(2, 1), (3, 0)]


def test_a_path_without_connections_of_our_own_grpc_has_none_of_it(ship: Ship) -> None:
    ship.kernel.seen = {"a": info_of()}
    ship.shipping.begin_path("measure")
    ship.shipping.end_path()
    (record,) = ship.path()
    assert "http2" not in record


def test_many_raw_results_do_not_wait_for_the_end_of_their_second(ship: Ship) -> None:
    ship.runner.wait_for(health=1)
    ship.recorder.raw_left = 2 * RAW_AT_ONCE
    for number in range(RAW_AT_ONCE):
        ship.end(number)
    gevent.sleep(2 * SHIP_EVERY_S)
    rows = [rows for message, data, _ in ship.runner.sent if message == RECORDS for rows in data["raw"]]
    assert [(each["cell"], each["columns"]["user"]) for each in rows] == [
        ("onnx-grpc/b1/c2", list(range(RAW_AT_ONCE)))
    ]
    assert ship.recorder.raw_waiting == 0


def test_a_second_is_shipped_when_it_is_over_and_a_phases_last_one_under_it(ship: Ship) -> None:
    ship.assignment.enter("warm-up")
    ship.assignment.under_way["warm-up"], ship.assignment.sent = 3, 7
    ship.runner.wait_for(health=1)
    ship.end(1, phase="warm-up")
    gevent.sleep(1.2 * SHIP_EVERY_S)
    assert ship.runner.records("window") == [], "its second goes on"
    ship.recorder.at = 1_001
    ship.runner.wait_for(health=2)
    (window,) = ship.runner.records("window")
    assert (window["second"], window["phase"], window["ok"]) == (1_000, "warm-up", 1)
    gevent.sleep(1.2 * SHIP_EVERY_S)
    for _ in range(2):  # the second time there is nothing to say
        ship.shipping.mark()
    ship.assignment.enter("drain")
    healths = ship.runner.records("health")
    assert [health["second"] for health in healths] == [999, 1_000, 1_001]
    about = {(one["cell"], one["repeat"], one["phase"], one["in_flight"], one["users"]) for one in healths}
    assert about == {("onnx-grpc/b1/c2", 3, "warm-up", 3, 2)}
    spans_ns = sum(health["span_ns"] for health in healths)
    assert 0.3e9 < spans_ns <= time.perf_counter_ns() - ship.made_ns, "each from the end of the one before"


def test_progress_is_told_when_it_changes(ship: Ship) -> None:
    ship.assignment.enter("measure")
    for changed in ({}, {"error": RequestError(ErrorKind.RESET, "")}, {"abandoned": True}):
        ship.end(1, **changed)
    ship.end(1, phase="warm-up")
    gevent.sleep(3.5 * SHIP_EVERY_S)
    told = [data for message, data, _ in ship.runner.sent if message == PROGRESS]
    expected = {"cell": "onnx-grpc/b1/c2", "repeat": 3, "phase": "measure", "ok": 1, "failed": 1}
    assert told == [expected]


def test_a_thousand_workers_tell_their_progress_less_often() -> None:
    assert [ticks_between(workers) for workers in (1, 100, 200, 1_000)] == [1, 1, 2, 10]


def test_the_last_seconds_windows_are_shipped_with_its_raw_results_when_told_to(ship: Ship) -> None:
    ship.recorder.raw_left = 1
    ship.end(1)
    ship.shipping.flush()
    ((_, message, _),) = ship.runner.sent
    assert [record["ok"] for record in message["records"]] == [1]
    assert [rows["columns"]["user"] for rows in message["raw"]] == [[1]]
    ship.shipping.flush()
    assert len(ship.runner.sent) == 1, "nothing is sent twice"


def test_requests_with_a_traceparent_go_along_and_how_many_more_there_were(ship: Ship) -> None:
    ship.recorder.traced_per_s = 1
    for user in (1, 2):
        ship.end(user, trace_id="0af7651916cd43dd8448eb211c80319c")
    ship.shipping.flush()
    ((_, message, _),) = ship.runner.sent
    assert [rows["columns"]["user"] for rows in message["traced"]] == [[1]]
    assert (message["untold"], message["raw"]) == (1, [])


def test_two_looks_at_once_count_nothing_twice(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have turns while many connections are looked at: the end of a phase, for one."""
    began_ns = time.perf_counter_ns()
    ship.shipping.begin_path("measure")
    gevent.sleep(0.03)

    def slow(port: int) -> Any:
        seen = ship.kernel(port)
        gevent.sleep(0.01)
        return seen

    monkeypatch.setattr(ship.shipping._connections[0], "_read", slow)
    ship.kernel.seen = {"a": info_of(bytes_sent=100)}
    first = gevent.spawn(ship.shipping._send_second, 7)
    gevent.sleep(0)
    ship.kernel.seen = {"a": info_of(bytes_sent=130)}
    ship.shipping.end_path()
    assert first.ready()
    assert [(record["phase"], record["bytes_sent"]) for record in ship.path()] == [
        ("measure", 100),
        ("measure", 30),
    ]
    spans_ns = [record["span_ns"] for record in ship.path()]
    assert min(spans_ns) > 0
    assert sum(spans_ns) <= time.perf_counter_ns() - began_ns, "each from the end of the one before"


class Both(Ship):
    """Two cells at the same time."""

    def __init__(self, address: str = "h:8021") -> None:
        super().__init__()
        self.other = assignment("trt-grpc/b1/c5", address, users=5, connections=5)
        self.shipping.assignments = [self.assignment, self.other]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    made = Both()
    monkeypatch.setattr(shipper, "Connections", lambda: Connections(made.kernel))
    yield made
    made.runner.greenlet.kill()


def test_of_cells_at_the_same_time_each_is_told_under_its_name_and_phase(both: Both) -> None:
    both.assignment.enter("warm-up")
    both.other.enter("measure")
    both.assignment.under_way["warm-up"], both.other.under_way["measure"] = 1, 4
    first, second = both.runner.wait_for(health=2)[:2]
    about = [(one["cell"], one["phase"], one["in_flight"], one["users"]) for one in (first, second)]
    assert about == [("onnx-grpc/b1/c2", "warm-up", 1, 2), ("trt-grpc/b1/c5", "measure", 4, 5)]
    shared = [{name: one[name] for name in ("cpu_pct", "lag", "span_ns", "cells")} for one in (first, second)]
    assert shared[0] == shared[1], "they share the process"
    assert shared[0]["cells"] == 2
    both.end(1, phase="warm-up")
    for user in range(3):
        both.end(user, cell="trt-grpc/b1/c5", error=RequestError(ErrorKind.RESET, "") if user else None)
    gevent.sleep(1.5 * SHIP_EVERY_S)
    told = [
        (data["cell"], data["ok"], data["failed"]) for kind, data, _ in both.runner.sent if kind == PROGRESS
    ]
    assert told[-2:] == [("onnx-grpc/b1/c2", 1, 0), ("trt-grpc/b1/c5", 1, 2)]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("h:8021", [("onnx-grpc/b1/c2", 2, 9), ("trt-grpc/b1/c5", 5, 9)]),
        ("other:8011", []),  # nobody can tell whose a connection to that port is
    ],
)
def test_connections_of_cells_at_the_same_time_are_told_apart_by_their_port(
    both: Both, address: str, told: list[Any]
) -> None:
    both.shipping.assignments = [both.assignment, assignment("trt-grpc/b1/c5", address, connections=5)]
    both.kernel.seen = {"a": info_of(bytes_sent=1)}
    both.shipping.begin_path("measure")
    assert both.kernel.ports == [8011, int(address[-4:])]
    both.kernel.seen = {"a": info_of(bytes_sent=10)}
    FIGURES.counts.update(goaways=1)
    both.shipping.end_path()
    assert [(one["cell"], one["asked"], one["bytes_sent"]) for one in both.path()] == told
    assert all("http2" not in one for one in both.path()), "nor whose a stream of our own gRPC is"
