"""The master's port, on a real socket: strangers are not heard, workers are."""

from locust.rpc.protocol import Message
from locust.rpc.zmqrpc import Client

import os
import socket
from collections.abc import Iterator
from typing import Any

import gevent
import msgpack
import pytest

from swarm.distributed.master_socket import MOST_BYTES, MasterSocket

HEART = {"state": "ready", "current_cpu_usage": 1.5, "current_memory_usage": 7}


@pytest.fixture
def master_socket() -> Iterator[MasterSocket]:
    made = MasterSocket("127.0.0.1", 0)
    made.workers.clear()
    yield made
    made.socket.context.destroy(linger=0)


def frames(kind: Any, data: Any, node: Any = "w", sender: bytes = b"w") -> list[bytes]:
    return [sender, msgpack.dumps([kind, data, node])]


def hears(master_socket: MasterSocket) -> Message:
    with gevent.Timeout(10):
        return master_socket.recv_from_client()[1]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xc1",
        b"\x93",
        os.urandom(1000),
        msgpack.dumps(5),
        msgpack.dumps([1, 2]),
        msgpack.dumps({"__datetime__": 1}),
        msgpack.dumps([["a"], None, "w"]),
        msgpack.dumps(["client_ready", 5, "w"]),
        msgpack.dumps(["client_ready", None, "w"]),
        msgpack.dumps(["client_ready", "2.47.0", "another"]),
        msgpack.dumps(["heartbeat", HEART, "w"]),
        msgpack.dumps(["swarm-records", {"records": [], "raw": []}, "w"]),
        msgpack.dumps(["locustfile", None, "w"]),
        msgpack.dumps(["quit", None, "w"]),
    ],
)
def test_what_is_no_message_of_a_worker_is_dropped_and_told_once(
    master_socket: MasterSocket, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    client = Client("127.0.0.1", master_socket.port, "w")
    for _ in range(3):
        client.socket.send(sent)
    client.send(Message("client_ready", "2.47.0", "w"))
    client.send(Message("heartbeat", HEART, "w"))
    assert (hears(master_socket).type, hears(master_socket).data) == ("client_ready", HEART)
    assert len([text for text in caplog.messages if text.startswith("the master's port got ")]) == 1
    client.socket.context.destroy(linger=0)


def test_what_is_no_frame_at_all_and_what_is_too_large_end_their_own_connection(
    master_socket: MasterSocket,
) -> None:
    with socket.create_connection(("127.0.0.1", master_socket.port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n" + os.urandom(5_000))
    large = Client("127.0.0.1", master_socket.port, "large")
    large.socket.send(b"x" * (MOST_BYTES + 1))
    client = Client("127.0.0.1", master_socket.port, "w")
    client.send(Message("client_ready", "2.47.0", "w"))
    assert hears(master_socket).node_id == "w"
    large.socket.context.destroy(linger=0)
    client.socket.context.destroy(linger=0)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("heartbeat", {}),
        ("heartbeat", {**HEART, "state": ["ready"]}),
        ("heartbeat", {**HEART, "state": "bored"}),
        ("heartbeat", {**HEART, "current_cpu_usage": "90"}),
        ("stats", {"stats": 5}),
        ("spawning_complete", {"user_classes_count": {"A": "1"}}),
        ("exception", {"msg": 5, "traceback": ""}),
        ("logs", {"worker_id": "w", "logs": [5]}),
    ],
)
def test_a_worker_is_not_heard_either_where_a_field_is_missing_or_another(
    master_socket: MasterSocket, kind: str, data: Any
) -> None:
    master_socket.heard(frames("client_ready", "2.47.0"))
    with pytest.raises(Exception, match="a malformed message"):
        master_socket.heard(frames(kind, data))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("heartbeat", HEART),
        ("spawning_complete", {"user_classes_count": {"A": 1}, "user_count": 1}),
        ("exception", {"msg": "x", "traceback": "y"}),
        ("logs", {"worker_id": "w", "logs": ["a line"]}),
        ("client_stopped", None),
        ("a message of a locustfile's own", {"any": "thing"}),
    ],
)
def test_a_worker_is_heard(master_socket: MasterSocket, kind: str, data: Any) -> None:
    master_socket.heard(frames("client_ready", "2.47.0"))
    worker, message = master_socket.heard(frames(kind, data))
    assert (worker, message.type, message.data) == ("w", kind, data)


def test_a_worker_stays_known_where_locust_makes_its_link_anew(master_socket: MasterSocket) -> None:
    master_socket.heard(frames("client_ready", "2.47.0"))
    again = MasterSocket("127.0.0.1", 0)
    assert again.heard(frames("heartbeat", HEART))[0] == "w"
    again.socket.context.destroy(linger=0)
