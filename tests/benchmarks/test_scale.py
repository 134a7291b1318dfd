"""The simulated workers say what real ones say, as often, and the figures are what the ledger holds."""

from locust.rpc.protocol import Message

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from benchmarks.growth import overhead_s
from benchmarks.scale import Shape, per_s, progress_s, shapes
from benchmarks.scaling import told
from benchmarks.scaling.crowd import Crowd, due
from benchmarks.scaling.grown import Look, grown
from reports.histogram import buckets, codec
from reports.ledger.ledger import FILE_NAME
from swarm.distributed.protocol import ASK, PROGRESS_FIELDS, is_parting

TAG = ("a-http/b1/c16", 1, "measure")
LISTED = Shape(1_000, 1.0)


@pytest.mark.parametrize(("progress_ticks", "progress"), [(10, 30), (100, 3), (0, 0)])
def test_in_three_seconds_every_worker_sends_as_real_ones_do(progress_ticks: int, progress: int) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for tick in range(300):
        seen.update((kind, worker) for kind, who in due(tick, 250, progress_ticks) for worker in who)
    counts = {
        kind: {seen[kind, worker] for worker in range(250)} for kind in ("heartbeat", "stats", "progress")
    }
    assert counts == {"heartbeat": {3}, "stats": {1}, "progress": {progress}}
    assert {seen["records", worker] for worker in range(250)} == {3 if progress_ticks else 0}
    assert {seen["path", worker] for worker in range(250)} == {3 if progress_ticks else 0}


def test_a_stamped_message_is_one_of_locusts_with_the_records_of_a_second() -> None:
    message = Message.unserialize(
        told.whole(told.stamped(told.told(told.records(TAG, 1)), 1_795_000_000, 77), "h_1")
    )
    window, health = message.data["records"]
    (path,) = told.path(TAG)
    assert (message.type, message.node_id, message.data["raw"]) == ("swarm-records", "h_1", [])
    assert (window["second"], health["second"], path["second"]) == (1_795_000_000, 1_795_000_000, told.SECOND)
    assert {(record["cell"], record["repeat"], record["phase"]) for record in (window, health, path)} == {TAG}
    assert (window["kind"], window["ok"], health["sent_ns"]) == ("window", told.PER_S, 77)
    (p50,) = buckets.percentiles_ns(codec.merged([window["histograms"]["latency"]]), [50.0])
    assert p50 == pytest.approx(20e6, rel=0.2)


def test_progress_has_the_fields_that_the_collector_reads() -> None:
    message = Message.unserialize(told.whole(told.progress(TAG, 5), "h_1"))
    assert message.data == dict(zip(PROGRESS_FIELDS, (*TAG, 5, 0), strict=True))


def test_bounds_are_for_a_thousand_workers_whose_progress_comes_as_the_product_tells_it() -> None:
    assert [progress_s(workers) for workers in (10, 100, 300, 3_000)] == [0.1, 0.1, 0.3, 3.0]
    assert per_s(LISTED) == pytest.approx(1_000 * (3 + 1 / 3 + 1))
    judged = {(shape.workers, shape.progress_s) for shape in shapes(quick=False) if shape.judged}
    assert judged == {(10, 0.1), (100, 0.1), (300, 0.3), (1_000, 1.0)}
    assert [shape.workers for shape in shapes(quick=True)] == [10, 100, 1_000]


@pytest.fixture
def router() -> Iterator[tuple[zmq.Socket[bytes], int]]:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        yield socket, socket.bind_to_random_port("tcp://127.0.0.1")


def test_each_simulated_worker_comes_says_hello_and_answers(
    router: tuple[zmq.Socket[bytes], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    socket, port = router
    monkeypatch.setattr("benchmarks.scaling.crowd.IDLE_S", 0.5)
    crowd = Crowd(port, 2, 0.1)
    for name, own in zip(crowd.names, crowd.sockets, strict=True):
        own.send(told.whole(told.head("client_ready", "x"), name))
    came = {socket.recv_multipart()[0].decode() for _ in crowd.names}
    cells = [{"cell": TAG[0], "repeat": 1}]
    asked = ({"op": "cell", "seq": 4, "cells": cells}, {"op": "drain", "seq": 5})
    orders = (("ack", {"index": 0}), *((ASK, data) for data in asked))
    for name in crowd.names:
        for kind, data in orders:
            socket.send_multipart([name.encode(), Message(kind, data, name).serialize()])
    crowd.live()  # until nothing has come for so long
    heard = []
    while socket.poll(100):
        heard.append(Message.unserialize(socket.recv_multipart()[1]))
    crowd.close()
    assert came == set(crowd.names) == {message.node_id for message in heard if message.type == "swarm-hello"}
    replies = [message.data for message in heard if message.type == "swarm-reply"]
    assert [data for data in replies if data["seq"] == 4] == [{"seq": 4}] * 2
    drained = [data for data in replies if data["seq"] == 5]
    assert all(map(is_parting, drained))
    assert [[one["users"] for one in data["parts"]] for data in drained] == [[1], [1]]


def test_a_run_is_folded_to_what_it_cost(tmp_path: Path) -> None:
    tag = {"cell": "a/b1/c1", "repeat": 1}
    measure = {**tag, "phase": "measure"}
    lag, delay = (codec.encoded_ns([value])[0] for value in (3_000_000, 1_000_000))
    window = {"ok": 90, "failures": {"timeout": 10}, "histograms": {"send_delay": delay}}
    drained = {"dropped": 2, "abandoned": 1, "due": 105, "sent": 101}
    lines = [
        {"kind": "header"},
        {"kind": "run", **tag, "event": "start", "utc": "1970-01-01T00:01:00Z"},
        {"kind": "phase", **tag, "phase": "warm-up", "utc": "1970-01-01T00:01:01Z"},
        {"kind": "window", **tag, "phase": "warm-up", "ok": 7, "failures": {}, "histograms": {}},
        {"kind": "phase", **measure, "utc": "1970-01-01T00:01:02Z"},
        {"kind": "window", **measure, **window},
        {"kind": "health", **measure, "cpu_pct": 50.0, "span_ns": 10**9, "cpu_wait_ns": 10**8, "lag": lag},
        {"kind": "phase", **tag, "phase": "drain", "utc": "1970-01-01T00:01:04Z"},
        {"kind": "drained", **measure, **drained},
        {"kind": "run", **tag, "event": "end", "utc": "1970-01-01T00:01:06Z"},
    ]
    (tmp_path / FILE_NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    looks = [Look(62.5, 1.0, 5, 7, 2), Look(63.5, 1.2, 6, 8, 3), Look(99.0, 9.0, 9, 9, 9)]
    (run,) = grown(tmp_path, looks).values()
    assert (run.requests, run.failures, run.dropped, run.abandoned, run.unsent) == (100, 10, 2, 1, 4)
    assert (run.per_s, run.cpu_us) == (50.0, pytest.approx(5_000))
    assert run.waited_pct == pytest.approx(10)
    assert run.lag_p99_ms == pytest.approx(3, rel=0.001)
    assert run.send_delay_p99_ms == pytest.approx(1, rel=0.001)
    assert run.master_cores == pytest.approx(0.2)
    assert (run.master_bytes, run.worker_bytes, run.threads) == (6, 8, 3)
    assert overhead_s(run) == pytest.approx(3.0)
