"""What benchmarks put in the place of Locust's link, and synthetic Results."""

from __future__ import annotations

from locust.rpc.protocol import Message

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from swarm.distributed.protocol import RECORDS
from swarm.distributed.raw_results import Rows
from users.result import Result

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Link:
    """A runner whose messages are packed and unpacked as on Locust's own link, without the socket."""

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[..., None]] = {}

    def register_message(self, kind: str, listener: Callable[..., None]) -> None:
        """As Locust's runner does."""
        self._listeners[kind] = listener

    def deliver(self, packed: bytes) -> None:
        """One packed message arrives."""
        message = Message.unserialize(packed)
        self._listeners[message.type](environment=None, msg=message)


def packed(
    records: list[dict[str, Any]], worker: str, raw: Sequence[Rows] = (), traced: Mapping[str, Any] = NOTHING
) -> bytes:
    """Records, raw Results where they are kept, and those with a traceparent, as a worker sends them."""
    data: bytes = Message(RECORDS, {"records": records, "raw": raw, **traced}, worker).serialize()
    return data


RECEIVER = """
import http.server

class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204 if "write" in self.path else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
"""
"""Takes whatever is posted to it, and prints its port first."""


@contextmanager
def receiver() -> Iterator[str]:
    """The URL of what takes all that exporters push, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def results(
    services_ns: Iterator[int], start_ns: int, gap_ns: int, cell: str, traced: bool = False
) -> Iterator[Result]:
    """One Result every `gap_ns`, each taking its service time."""
    for number, service_ns in enumerate(services_ns):
        begun_ns = start_ns + number * gap_ns
        yield Result(
            cell=cell,
            repeat=1,
            phase="measure",
            user=number % 16,
            images=1,
            intended_ns=begun_ns,
            start_ns=begun_ns,
            end_ns=begun_ns + service_ns,
            request_bytes=13_000,
            response_bytes=11_000,
            phases_ns=PHASES_NS,
            server_ns=SERVER_NS,
            trace_id=f"{number:032x}" if traced else "",
        )


PHASES_NS = {"encode": 1_000, "send": 90_000, "wait": 9_000_000, "receive": 50_000, "decode": 110_000}
SERVER_NS = {"decode": 1_000_000, "preprocess": 2_000_000, "queue": 100_000, "compute": 5_000_000}
