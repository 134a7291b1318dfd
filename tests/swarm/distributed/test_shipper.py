"""The `path` records of a worker: of which phase, over how long, and with how many connections asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.pool import Group

from reports.ledger.records import check_record
from swarm.distributed import shipper
from swarm.distributed.protocol import RECORDS
from swarm.distributed.recorder import Recorder
from swarm.distributed.shipper import RAW_AT_ONCE, SHIP_EVERY_S, Shipper
from swarm.distributed.tcp_stats import Connections
from tests.presets import preset
from tests.stand_ins import stand_in
from tests.swarm.fakes import FakeRunner
from tests.swarm.kernel import Kernel, info_of
from tests.users.ways import IMAGES, codec_at
from users.backends.registry import codec_of
from users.codecs.v2_grpc import V2Grpc
from users.http2.figures import FIGURES
from users.load.assignment import Assignment
from users.result import Result
from users.transport.transports import client


class ShippingRunner(FakeRunner):
    """With a place for greenlets, none of which gets a turn in these tests."""

    user_count = 2

    def __init__(self) -> None:
        super().__init__()
        self.greenlet = Group()

    def records(self, kind: str) -> list[dict[str, Any]]:
        shipped = [data["records"] for message, data, _ in self.sent if message == RECORDS]
        return [record for records in shipped for record in records if record["kind"] == kind]


class Ship:
    """A shipping on a kernel that the test plays."""

    def __init__(self) -> None:
        self.runner, self.kernel = ShippingRunner(), Kernel()
        self.shipping = Shipper(self.runner, Recorder())  # type: ignore[arg-type]
        codec = codec_of(preset("onnx-grpc", "h:8011", "m"))
        self.assignment = Assignment(codec, [], 1.0, cell="onnx-grpc/b1/c2", repeat=3, connections=2)
        self.shipping.assignment = self.assignment

    def path(self) -> list[dict[str, Any]]:
        return self.runner.records("path")


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


def test_no_connections_make_no_record(ship: Ship) -> None:
    ship.shipping.begin_path("measure")
    ship.shipping.end_path()
    assert ship.path() == []


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
        ship.shipping.begin_path(phase)
        send(times)
        ship.shipping.end_path()
    first, second = ship.path()
    assert check_record(first) is None
    assert (first["http2"]["connections"], first["http2"]["streams"]) == (1, 1)
    sent = [record["http2"]["frames_sent"] for record in (first, second)]
    assert 4 <= sent[0] < sent[1] < 3 * sent[0], "each has its own phase's, and none from between them"


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
    recorder = ship.shipping._recorder
    recorder.raw_left = 2 * RAW_AT_ONCE
    now_ns = time.perf_counter_ns()
    for number in range(RAW_AT_ONCE):
        recorder.add(Result("a/b1/c1", 1, "measure", number, 1, now_ns, now_ns, now_ns + 1_000, 10))
    gevent.sleep(2 * SHIP_EVERY_S)
    rows = [rows for message, data, _ in ship.runner.sent if message == RECORDS for rows in data["raw"]]
    assert [(each["cell"], each["columns"]["user"]) for each in rows] == [
        ("a/b1/c1", list(range(RAW_AT_ONCE)))
    ]
    assert recorder.raw_waiting == 0


def test_two_looks_at_once_count_nothing_twice(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have turns while many connections are looked at: the end of a phase, for one."""
    ship.shipping.begin_path("measure")

    def slow(port: int) -> Any:
        seen = ship.kernel(port)
        gevent.sleep(0.01)
        return seen

    monkeypatch.setattr(ship.shipping._connections, "_read", slow)
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
    assert all(record["span_ns"] > 0 for record in ship.path())
