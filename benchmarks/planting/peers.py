"""Set-ups whose server, or what stands before it, reads or writes in a way of its own; and the way back."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.planting.processes import listener
from benchmarks.planting.proxies import nginx
from benchmarks.planting.setup import Behind, Front, Setup, chained, emulated
from swarm.links.profiles import LinkProfile
from tests.processes import free_port

PROGRAMS = Path(__file__).with_name("programs")
READ_BYTES_PER_S, RECEIVE_BUFFER = 6_000_000, 128_000
"""A request of 602 kB is then read in 100 ms, all connections together, and does not fit in the buffer."""
WIDE, WIDE_BATCH = 65_536, 8
"""Numbers in a row, and rows in an answer: 2 MB. Small pictures make the way there short."""
USUAL, SMALL_PX = 512, 64
MODEL_MS = 4
DOWN_MBIT, DOWN_MS = 50.0, 5.0
"""2 MB take 335 ms on the way back."""
BACK = LinkProfile("back", one_way_ms=DOWN_MS, mbit_per_s=DOWN_MBIT, queue_bytes=500_000)
PORTS = (20_000, 20_009)
"""Of the client's namespace: fewer than there are users, each with a connection of its own."""
FAR = LinkProfile("far", one_way_ms=10)
FILE = """
url = "http://{address}/embed"
model = "rows"
computes = false
max_batch = 64
[body]
json = { input = ["$data_url"] }
[answer]
vectors = "."
encoding = "raw"
dimension = {dimension}
[ready]
path = "/"
"""


def program(name: str, *options: str) -> Front:
    """One of our programs; what it forwards to, if anything, is the server behind it."""

    @contextmanager
    def front(behind: Behind) -> Iterator[int]:
        port = free_port()
        command = [sys.executable, "-I", "-S", str(PROGRAMS / name), behind.host, str(port)]
        with listener([*command, *behind.servers, *options], port, behind.folder / f"{name}.log"):
            yield port

    return front


def answering(dimension: int) -> Front:
    """Our server that answers with rows of so many numbers."""
    return program("answers.py", "--dimension", str(dimension), "--ms", str(MODEL_MS))


def rows_of(dimension: int) -> str:
    """The file of its endpoint."""
    return FILE.replace("{dimension}", str(dimension))


@contextmanager
def few_ports() -> Iterator[Sequence[str]]:
    """In a network namespace, whose settings they are: a command with few local ports to connect from.

    Ports of closed connections are used again soon, so that the questions before the load leave some.
    """
    first, last = PORTS
    told = {"ip_local_port_range": f"{first} {last}", "tcp_tw_reuse": "1"}
    settings = [f"echo {value} > /proc/sys/net/ipv4/{name}" for name, value in told.items()]
    yield ("sh", "-c", " && ".join([*settings, 'exec "$@"']), "sh")


SETUPS = (
    Setup(
        "a server that reads slowly", "server-intake", "emulated-http", emulated("4+0"), users=4,
        front=program(
            "shim.py", "--read-bytes-per-s", str(READ_BYTES_PER_S), "--receive-buffer", str(RECEIVE_BUFFER)
        ),
    ),
    Setup(
        "head and body in two writes, Nagle's algorithm on", "nagle", "emulated-http", emulated("4+0"),
        front=program("shim.py", "--split-answers"),
    ),
    Setup(
        "answers of 2 MB over a narrow way back", "downlink", "wide", (), batch=WIDE_BATCH, link=BACK,
        file=rows_of(WIDE), picture_px=SMALL_PX, front=answering(WIDE),
    ),
    Setup(
        "one HTTP connection for 8 users, long path", "connections", "emulated-http", emulated("4+0"),
        users=8, study=("--channels", "shared"), link=FAR,
    ),
    Setup(
        "nginx closes the connection after each answer", "handshake", "rows", (), link=FAR,
        file=rows_of(USUAL), picture_px=SMALL_PX,
        front=chained(nginx("keepalive_timeout 0;"), answering(USUAL)),
    ),
    Setup(
        "ten local ports for 16 users", "client-ports", "emulated-http", emulated("20+0", "--instances", "4"),
        users=16, link=FAR, client_in=few_ports,
    ),
)  # fmt: skip
