"""A stranger at the master's port, for real: the study goes on as if nobody had been there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
import zmq.green as zmq

from swarm.distributed.master_socket import MOST_BYTES
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import study
from tests.locustfiles.test_workers import codes, distributed, wait_until_measuring
from tests.processes import free_port, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]

WINDOW = {"kind": "footer", "status": "complete", "cell": "x", "repeat": 0, "phase": "measure", "second": 1}
BEFORE = [
    *(b"", b"\xc1", os.urandom(1_000), msgpack.dumps(5)),
    *(msgpack.dumps([kind, None, "evil"]) for kind in ("heartbeat", "locustfile", "quit")),
    msgpack.dumps(["client_ready", 5, "evil"]),
    msgpack.dumps(["swarm-records", {"records": [WINDOW], "raw": []}, "evil"]),
]


@pytest.fixture
def stranger() -> Iterator[zmq.Socket[bytes]]:
    """A socket of Locust's protocol, not yet connected."""
    context = zmq.Context()
    made: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    made.setsockopt(zmq.IDENTITY, b"evil")
    yield made
    context.destroy(linger=0)


def test_what_strangers_send_to_the_masters_port_changes_no_study(
    start_service: StartService, tmp_path: Path, stranger: zmq.Socket[bytes]
) -> None:
    cells = ("--cells", "*/b1/c1", "--warm-up", "1", "--seconds", "3")
    master, _, _ = distributed(tmp_path, start_service(), 1, *cells)
    wait_until_measuring(master)
    arguments = master.process.args
    assert isinstance(arguments, list)
    port = int(arguments[arguments.index("--master-bind-port") + 1])
    stranger.connect(f"tcp://127.0.0.1:{port}")
    for message in (*BEFORE, b"x" * (MOST_BYTES + 1)):
        stranger.send(message)
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n" + os.urandom(5_000))
    # On a machine that others use it may be client-bound, which is no stranger's doing.
    assert master.wait(40) in (0, 3), master.text
    assert not codes(master).get("pytorch-http/b1/c1", set()) & {"worker-lost", "worker-joined"}
    footer = master.ledger()[-1]
    assert (footer["kind"], footer["status"], footer["reason"]) == ("footer", "complete", "")
    (row,) = master.cells()
    assert (row["failures"], row["workers"]) == ("0", "1")
    assert {record["worker"] for record in master.ledger() if record["kind"] == "window"} == {"w0"}
    assert master.text.count("the master's port got not a Locust message") == 1
    assert "Traceback" not in master.text


OBEYED = "\x1b]0;owned\x07\x9b2J\x7f\u202e"


def test_words_of_a_peer_reach_the_masters_terminal_and_its_log_escaped(
    start_service: StartService, tmp_path: Path, stranger: zmq.Socket[bytes]
) -> None:
    port, file = str(free_port()), tmp_path / "locust.log"
    ways = ("--master", "--expect-workers", "2", "--master-bind-port", port, "--logfile", str(file))
    master = study(tmp_path, "--pytorch-url", f"127.0.0.1:{start_service()}", *ways)
    wait_until(lambda: file.exists() and "Waiting for workers" in file.read_text(), 60, lambda: master.text)
    stranger.connect(f"tcp://127.0.0.1:{port}")
    for kind, data in (("client_ready", "2.47.0"), (OBEYED, None), ("exception", {"msg": OBEYED})):
        stranger.send(msgpack.dumps([kind, data, "evil"]))
    wait_until(lambda: "Unknown message type" in file.read_text(), 20, lambda: master.text)
    master.end()
    text = file.read_text() + master.text
    assert r"evil (index 0): \x1b]0;owned\x07\x9b2J\x7f\u202e" in text
    assert {char for char in text if not char.isprintable()} == {"\n"}
