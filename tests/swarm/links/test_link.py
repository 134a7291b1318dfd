"""Links to this machine's own servers: what TCP sees over them, and that nothing is left of them."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from swarm.links.meter import SO_RCVBUFFORCE
from swarm.links.namespace import LinkError, require_means, run
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile
from tests.swarm.links.means import exists, namespaces_of, real

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEVICES = Path("/sys/class/net")


ECHO = """
import json, socket, sys, time
clock = time.perf_counter
began = clock()
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as found:
    spans = [clock() - began]
    for _ in range(5):
        began = clock()
        found.sendall(b"x")
        assert found.recv(1) == b"x"
        spans.append(clock() - began)
    algorithm = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
print(json.dumps({"least_s": min(spans), "algorithm": algorithm}))
"""
BULK = """
import json, socket, sys, threading, time
def send():
    found.sendall(bytes(int(sys.argv[3])))
    found.shutdown(socket.SHUT_WR)
began = time.perf_counter()
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as found:
    # While it is read from, or both ends would wait for room.
    threading.Thread(target=send).start()
    back = sum(iter(lambda: len(found.recv(65536)), 0))
print(json.dumps({"span_s": time.perf_counter() - began, "back": back}))
"""
DATAGRAMS = """
import json, socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
    for number in range(int(sys.argv[3])):
        found.sendto(number.to_bytes(100), (sys.argv[1], int(sys.argv[2])))
        if number % 20 == 0:
            time.sleep(0.001)  # or the device's own queue overflows, of which the link knows nothing
print("{}")
"""


class EchoServer:
    """Sends back what comes, on every address of the machine's own namespace."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("0.0.0.0", 0))
        self.port: int = self._socket.getsockname()[1]
        self.algorithms: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(found,), daemon=True).start()

    def _echo(self, found: socket.socket) -> None:
        with found:
            name = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            self.algorithms.append(name.rstrip(b"\0").decode())
            while data := found.recv(65536):
                found.sendall(data)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def server() -> Iterator[EchoServer]:
    made = EchoServer()
    yield made
    made.close()


def linked(profile: LinkProfile) -> Network:
    return Network(["h1"], [profile], servers_here=True)


def client(link: Network, script: str, *arguments: object) -> dict[str, Any]:
    """What a client said that ran at the other end of the link."""
    words = [link.address("h1", *link.profiles), *map(str, arguments)]
    command = link.command("h1", [sys.executable, "-I", "-S", "-c", script, *words])
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def left_of(pid: int) -> list[str]:
    """Whatever there is of a process's networks here."""
    devices = [path.name for path in DEVICES.iterdir() if path.name.startswith("is")]
    return [*namespaces_of(pid), *devices]


@real
def test_a_round_trip_takes_at_least_what_was_asked(server: EchoServer) -> None:
    before = ALLOWED.read_text()
    with linked(LinkProfile("x", one_way_ms=15, congestion_control="reno")) as link:
        found = client(link, ECHO, server.port)
    assert found["least_s"] >= 0.03
    assert found["algorithm"] == "reno"
    assert server.algorithms == ["reno"]
    assert ALLOWED.read_text() == before


@real
def test_a_bulk_transfer_keeps_to_the_rate_both_ways(server: EchoServer) -> None:
    size = 2_000_000
    with linked(LinkProfile("x", one_way_ms=5, mbit_per_s=20, queue_bytes=100_000)) as link:
        found = client(link, BULK, server.port, size)
    assert found["back"] == size
    assert size * 8 / found["span_s"] <= 20e6 * 1.1


@real
def test_the_lost_share_is_the_asked_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbits", lambda bits: 7)
    count = 5000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("0.0.0.0", 0))
        sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2**25)
        sink.settimeout(0.5)
        with linked(LinkProfile("x", loss_pct=2)) as link:
            client(link, DATAGRAMS, sink.getsockname()[1], count)
            arrived = []
            with suppress(TimeoutError):
                while True:
                    arrived.append(int.from_bytes(sink.recv(2048)))
    chance = random.Random("7-up").random
    assert arrived == [number for number in range(count) if chance() >= 0.02]
    assert 0.97 < len(arrived) / count < 0.99


@real
def test_the_host_reaches_nothing_but_the_link(server: EchoServer) -> None:
    with linked(LinkProfile("x", one_way_ms=1)) as link:
        routes = json.loads(run(*link.command("h1", ["ip", "-j", "route"])))
        assert {route["dst"] for route in routes} == {*link.addresses["h1"]["x"].values()}


@real
@pytest.mark.parametrize("one_way_ms", [0, 1], ids=["as it is", "emulated"])
def test_nothing_is_left_after_an_exception_not_even_clients(one_way_ms: float) -> None:
    link, before, sleepers = linked(LinkProfile("x", one_way_ms=one_way_ms)), left_of(os.getpid()), []

    def load() -> None:
        with link:
            sleepers.append(subprocess.Popen(link.command("h1", ["sleep", "100"])))
            assert len(left_of(os.getpid())) == len(before) + 3, "namespace, device, and what holds the slot"
            raise ValueError("the load failed")

    with pytest.raises(ValueError, match="the load failed"):
        load()
    assert left_of(os.getpid()) == before
    assert not any(exists(tun_link.process.pid) for tun_link in link.tun_links)
    assert sleepers[0].wait(10) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("user", "tun", "lacks", "text"),
    [
        (1000, "/", "", "namespaces for client hosts and emulated links need root"),
        (0, "/nowhere/tun", "", "an emulated link needs /nowhere/tun"),
        (0, "/", "ip", "needs the command `ip`: install the package iproute2"),
        (0, "/", "nsenter", "needs the command `nsenter`: install the package util-linux"),
    ],
)
def test_what_is_missing_is_named(user: int, tun: str, lacks: str, text: str) -> None:
    def which(command: str) -> str | None:
        return None if command == lacks else f"/usr/bin/{command}"

    with pytest.raises(LinkError, match=text):
        require_means(lambda: user, Path(tun), which)
