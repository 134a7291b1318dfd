"""Whoever reaches the master's port: floods, absurd figures, and words for the operator's terminal."""

from locust.rpc.protocol import Message
from locust.rpc.zmqrpc import Client

import base64
import contextlib
import math
import resource
from collections.abc import Iterator
from typing import Any

import gevent
import msgpack
import pytest
import zmq

from reports.histogram import codec
from reports.ledger.records import MOST_WORKERS
from swarm.distributed.master_socket import (
    BURST_S,
    MESSAGES_PER_S,
    MOST_BYTES,
    MOST_NAMES,
    MOST_WAITING,
    SILENT_S,
    MasterSocket,
    RateLimit,
    RefusedMessage,
)
from swarm.distributed.protocol import are_records
from tests.swarm.fakes import FakeClock

ESCAPES = "\x1b]0;owned\x07\x9b2J\r\x00‮"
HEART = {"state": "ready", "current_cpu_usage": 1.5, "current_memory_usage": 7}
ENTRY = {"name": "a/b1/c1", "method": "HTTP", "num_requests": 1, "response_times": {40: 1}}
STATS = {"stats": [ENTRY], "stats_total": ENTRY, "errors": {}, "user_classes_count": {}}


@pytest.fixture
def master_socket() -> Iterator[MasterSocket]:
    made = MasterSocket("127.0.0.1", 0)
    for of_all in (made.workers, made.rate_limits, made.names):
        of_all.clear()
    yield made
    made.socket.context.destroy(linger=0)


def heard(master_socket: MasterSocket, kind: str, data: Any, worker: str = "w") -> Message:
    return master_socket.heard([worker.encode(), msgpack.dumps([kind, data, worker])])[1]


def test_a_worker_that_floods_is_heard_as_often_as_any_needs(master_socket: MasterSocket) -> None:
    heard(master_socket, "client_ready", "2.47.0")
    got, refusals = 0, set[str]()
    for _ in range(20_000):
        try:
            heard(master_socket, "heartbeat", HEART)
            got += 1
        except RefusedMessage as refused:
            refusals.add(str(refused))
    assert any("more messages than a worker sends" in text for text in refusals)
    assert got <= MESSAGES_PER_S * (BURST_S + 10)
    heard(master_socket, "client_ready", "2.47.0", "another")
    assert heard(master_socket, "heartbeat", HEART, "another").data == HEART


def test_a_rate_limit_grows_again() -> None:
    clock = FakeClock()
    limit = RateLimit(clock)
    assert [limit.take(1) for _ in range(MESSAGES_PER_S * BURST_S + 1)][-2:] == [True, False]
    clock.sleep(1.0)
    assert sum(limit.take(1) for _ in range(1_000)) == MESSAGES_PER_S
    clock.sleep(3_600.0)
    assert sum(limit.take(1) for _ in range(2_000)) == MESSAGES_PER_S * BURST_S


def flood(port: int, over: list[bool]) -> None:
    """What is no message, as fast as it goes, from a thread that gevent does not know."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as evil:
        evil.setsockopt(zmq.LINGER, 0)
        evil.setsockopt(zmq.SNDTIMEO, 1_000)
        evil.connect(f"tcp://127.0.0.1:{port}")
        while not over:
            with contextlib.suppress(zmq.Again):
                evil.send(b"\xc1" * 100)


def test_others_run_while_strangers_flood(master_socket: MasterSocket) -> None:
    over = []
    flooding = gevent.get_hub().threadpool.spawn(flood, master_socket.port, over)
    listening = gevent.spawn(master_socket.recv_from_client)
    gevent.sleep(0.5)
    began = master_socket._heard
    with gevent.Timeout(20):
        for _ in range(50):
            gevent.sleep(0.001)
    # It has heard thousands meanwhile, and a worker is heard among them.
    assert master_socket._heard > began + 100
    worker = Client("127.0.0.1", master_socket.port, "w")
    worker.send(Message("client_ready", "2.47.0", "w"))
    with gevent.Timeout(20):
        assert listening.get()[0] == "w"
    over.append(True)
    flooding.get()
    worker.socket.context.destroy(linger=0)


def test_what_waits_to_be_heard_takes_little_memory(master_socket: MasterSocket) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evil = Client("127.0.0.1", master_socket.port, "evil")
    evil.socket.setsockopt(zmq.SNDHWM, 4)
    body = b"x" * MOST_BYTES
    sending = gevent.spawn(lambda: [evil.socket.send(body) for _ in range(100)])
    gevent.sleep(2.0)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    sending.kill()
    evil.socket.context.destroy(linger=0)
    # Here both ends are in one process.
    assert grown_mb < 4 * MOST_WAITING * MOST_BYTES / 2**20


def test_there_are_only_so_many_workers_and_names(master_socket: MasterSocket) -> None:
    for number in range(MOST_WORKERS):
        heard(master_socket, "client_ready", "2.47.0", f"w{number}")
    with pytest.raises(RefusedMessage, match="one worker too many"):
        heard(master_socket, "client_ready", "2.47.0", "one more")
    for first in range(0, MOST_NAMES, 500):
        entries = [{**ENTRY, "name": f"n{number}"} for number in range(first, first + 500)]
        heard(master_socket, "stats", {**STATS, "stats": entries}, "w1")
    with pytest.raises(RefusedMessage, match="more names"):
        heard(master_socket, "stats", {**STATS, "stats": [{**ENTRY, "name": "one more"}]}, "w1")
    for number in range(10):
        with pytest.raises(RefusedMessage, match="more names"):
            heard(master_socket, "exception", {"msg": "x", "traceback": f"t{number}"}, "w1")


def test_who_is_gone_makes_room(master_socket: MasterSocket) -> None:
    clock = FakeClock()
    for number in range(MOST_WORKERS):
        heard(master_socket, "client_ready", "2.47.0", f"w{number}")
        master_socket.rate_limits[f"w{number}"] = RateLimit(clock)
    clock.sleep(SILENT_S - 1)
    heard(master_socket, "heartbeat", HEART, "w1")
    clock.sleep(2)
    heard(master_socket, "client_ready", "2.47.0", "one more")
    assert heard(master_socket, "heartbeat", HEART, "w1").data == HEART
    with pytest.raises(RefusedMessage, match="a message from an unknown worker"):
        heard(master_socket, "heartbeat", HEART, "w2")
    heard(master_socket, "client_ready", "2.47.0", "w2")


@pytest.mark.parametrize("worker", [f"w{ESCAPES}", "w\n", "w\x1b[2J"])
def test_no_name_of_a_worker_tells_the_terminal_anything(master_socket: MasterSocket, worker: str) -> None:
    with pytest.raises(RefusedMessage, match="under another worker's name"):
        heard(master_socket, "client_ready", "2.47.0", worker)


def test_nor_do_other_words(master_socket: MasterSocket) -> None:
    assert str(heard(master_socket, "client_ready", f"2.47.0{ESCAPES}").data).isprintable()
    told = heard(master_socket, "exception", {"msg": ESCAPES, "traceback": f"a\n{ESCAPES}"}).data
    assert [text.isprintable() for text in told["msg"].split("\n")] == [True]
    assert [text.isprintable() for text in told["traceback"].split("\n")] == [True, True]
    stats = heard(master_socket, "stats", {**STATS, "stats": [{**ENTRY, "name": f"a{ESCAPES}"}]}).data
    assert stats["stats"][0]["name"].isprintable()
    assert heard(master_socket, "swarm-hello", {"host": ESCAPES}).data["host"].isprintable()
    assert heard(master_socket, "swarm-reply", {"seq": 1, "error": ESCAPES}).data["error"].isprintable()


@pytest.mark.parametrize(
    "change",
    [
        {"response_times": {12_345.678: 1}},
        {"response_times": dict.fromkeys(range(100_000), 1)},
        {"response_times": {2**62: 1}},
        {"response_times": {-1: 1}},
        {"num_reqs_per_sec": dict.fromkeys(range(100_000), 1)},
        {"total_response_time": math.inf},
        {"name": "x" * 100_000},
    ],
)
def test_absurd_tables_are_dropped(master_socket: MasterSocket, change: dict[str, Any]) -> None:
    heard(master_socket, "client_ready", "2.47.0")
    heard(master_socket, "stats", STATS)
    with pytest.raises(RefusedMessage, match="malformed"):
        heard(master_socket, "stats", {**STATS, "stats": [{**ENTRY, **change}]})
    with pytest.raises(RefusedMessage, match="malformed"):
        heard(master_socket, "stats", {**STATS, "stats_total": {**ENTRY, **change}})


ONE = codec.encoded_ns([40_000_000])[0]
OF = {"cell": "a/b1/c1", "repeat": 1, "phase": "measure", "second": 1_700_000_000}
WINDOW: dict[str, Any] = {
    "kind": "window", **OF, "ok": 1, "failures": {}, "images": 1,
    "histograms": dict.fromkeys(("latency", "service_time", "send_delay"), ONE),
}  # fmt: skip
HEALTH = {"kind": "health", **OF, "cpu_pct": 12.0, "lag": ONE}


def full() -> tuple[str, list[int]]:
    """A histogram with a value in each bucket from 2 ms on, in a few hundred bytes; and these values."""
    values_ns = [(2048 << at >> 1) + (step << at) for at in range(1, 20) for step in range(1024)]
    return codec.encoded_ns([us * 1_000 for us in values_ns])[0], values_ns


FULL = full()
FULL_ONES = dict.fromkeys(("latency", "service_time", "send_delay"), FULL[0])


def records(*given: dict[str, Any]) -> dict[str, Any]:
    return {"records": list(given), "raw": []}


def bomb() -> str:
    """A histogram that says what it is, and unpacks to a hundred megabytes."""
    import zlib

    packed = zlib.compress(bytes(100 << 20), 9)
    head = base64.b64decode(ONE)[:4]
    return base64.b64encode(head + len(packed).to_bytes(4, "big") + packed).decode()


@pytest.mark.parametrize(
    "record",
    [
        {**WINDOW, "histograms": {**WINDOW["histograms"], "latency": ONE[:-8]}},
        {**WINDOW, "histograms": {**WINDOW["histograms"], "latency": "HISTORY"}},
        {**WINDOW, "histograms": {**WINDOW["histograms"], "latency": bomb()}},
        {**WINDOW, "ok": 2},
        {**WINDOW, "ok": len(FULL[1]), "histograms": FULL_ONES | {f"{n}": FULL[0] for n in range(300)}},
        {**WINDOW, "failures": {"x" * 50: 1}},
        {**WINDOW, "more": {"deep": [math.inf]}},
        {**HEALTH, "cpu_pct": math.inf},
        {**HEALTH, "lag": "HIST"},
    ],
)
def test_absurd_records_are_dropped(record: dict[str, Any]) -> None:
    assert are_records(records(WINDOW, HEALTH))
    # A full one alone may be.
    assert are_records(records({**WINDOW, "ok": len(FULL[1]), "histograms": FULL_ONES}))
    assert not are_records(records(record))
