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
from tests.locustfiles.test_workers import codes, distributed, wait_until_measuring

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
