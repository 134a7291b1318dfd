"""Emulated links, for real: what TCP sees over them, and that nothing is left of them."""

from __future__ import annotations

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
from swarm.links.namespace import NAMESPACES, LinkError, remove_orphans, require_means
from swarm.links.network import EmulatedLink
from swarm.links.profiles import LinkProfile
from tests.processes import eventually
from tests.swarm.links.means import ROOT, exists, real

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


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


def client(link: EmulatedLink, script: str, *arguments: object) -> dict[str, Any]:
    """What a client said that ran in the link's namespace."""
    words = [link.server_address, *map(str, arguments)]
    command = link.command([sys.executable, "-I", "-S", "-c", script, *words])
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def left_of(link: EmulatedLink) -> list[str]:
    """Whatever there still is of a link."""
    slot = link.namespace.rpartition("-")[2]
    places = [NAMESPACES / link.namespace, Path(f"/sys/class/net/islink{slot}")]
    places += [Path(f"/sys/class/net/islink{slot}c"), Path(f"/proc/{link.tun_links[0].process.pid}")]
    return [str(place) for place in places if place.exists()]


@real
def test_a_round_trip_takes_at_least_what_was_asked(server: EchoServer) -> None:
    before = ALLOWED.read_text()
    with EmulatedLink(LinkProfile("x", one_way_ms=15, congestion_control="cubic")) as link:
        found = client(link, ECHO, server.port)
    assert found["least_s"] >= 0.03
    assert found["algorithm"] == "cubic"
    assert server.algorithms == ["cubic"]
    assert ALLOWED.read_text() == before


@real
def test_a_bulk_transfer_keeps_to_the_rate_both_ways(server: EchoServer) -> None:
    size = 2_000_000
    with EmulatedLink(LinkProfile("x", one_way_ms=5, mbit_per_s=20, queue_bytes=100_000)) as link:
        found = client(link, BULK, server.port, size)
    assert found["back"] == size
    assert size * 8 / found["span_s"] <= 20e6 * 1.1


@real
def test_the_lost_share_is_the_asked_one() -> None:
    count = 5000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("0.0.0.0", 0))
        sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2**25)
        sink.settimeout(0.5)
        with EmulatedLink(LinkProfile("x", loss_pct=2), seed=7) as link:
            client(link, DATAGRAMS, sink.getsockname()[1], count)
            arrived = []
            with suppress(TimeoutError):
                while True:
                    arrived.append(int.from_bytes(sink.recv(2048)))
    chance = random.Random("7-up").random
    assert arrived == [number for number in range(count) if chance() >= 0.02]
    assert 0.97 < len(arrived) / count < 0.99


@real
def test_a_lossy_link_still_brings_everything(server: EchoServer) -> None:
    with EmulatedLink(LinkProfile("x", one_way_ms=1, loss_pct=2), seed=1) as link:
        assert client(link, BULK, server.port, 2_000_000)["back"] == 2_000_000


@real
def test_two_links_at_once(server: EchoServer) -> None:
    with (
        EmulatedLink(LinkProfile("x", one_way_ms=5)) as near,
        EmulatedLink(LinkProfile("y", one_way_ms=20)) as far,
    ):
        assert near.namespace != far.namespace
        assert near.server_address != far.server_address
        assert client(far, ECHO, server.port)["least_s"] >= 0.04
        assert client(near, ECHO, server.port)["least_s"] >= 0.01


@real
def test_settings_of_tcp_are_the_namespaces_own() -> None:
    names = ["tcp_congestion_control", "tcp_slow_start_after_idle"]
    paths = [f"/proc/sys/net/ipv4/{name}" for name in names]
    before = [Path(path).read_text() for path in paths]
    with EmulatedLink(LinkProfile("x", congestion_control="reno")) as link:
        said = subprocess.run(link.command(["cat", *paths]), stdout=subprocess.PIPE, text=True, check=True)
        assert said.stdout.split() == ["reno", "1"]
        assert [Path(path).read_text() for path in paths] == before


@real
def test_an_unknown_algorithm_is_named_and_leaves_nothing() -> None:
    link = EmulatedLink(LinkProfile("x", congestion_control="guess"))
    with pytest.raises(LinkError, match=r"congestion_control=guess: this kernel has .*reno"):
        link.__enter__()
    assert not (NAMESPACES / link.namespace).exists()


@real
def test_nothing_is_left_after_an_exception_not_even_clients() -> None:
    link = EmulatedLink(LinkProfile("x"))
    sleepers = []

    def load() -> None:
        with link:
            sleepers.append(subprocess.Popen(link.command(["sleep", "100"])))
            assert len(left_of(link)) == 3, "namespace, our device, forwarder"
            raise ValueError("the load failed")

    with pytest.raises(ValueError, match="the load failed"):
        load()
    assert left_of(link) == []
    assert sleepers[0].wait(10) == -signal.SIGKILL


@real
def test_a_forwarder_that_dies_is_told_and_leaves_nothing() -> None:
    link = EmulatedLink(LinkProfile("x"))

    def load() -> None:
        with link:
            link.check()
            os.kill(link.tun_links[0].process.pid, signal.SIGKILL)

    with pytest.raises(LinkError, match="its forwarder ended with exit code -9"):
        load()
    assert left_of(link) == []


@real
def test_a_fork_that_ends_leaves_the_link_alone(server: EchoServer) -> None:
    with EmulatedLink(LinkProfile("x")) as link:
        link._owner += 1
        link.__exit__(None, None, None)
        link._owner -= 1
        assert client(link, ECHO, server.port)["least_s"] > 0


KILLED = """
import json, subprocess, time
from swarm.links.network import EmulatedLink
from swarm.links.profiles import LinkProfile
with EmulatedLink(LinkProfile('x')) as link:
    sleeper = subprocess.Popen(link.command(["sleep", "100"]))
    print(json.dumps([link.namespace, link.tun_links[0].process.pid, sleeper.pid]), flush=True)
    time.sleep(100)
"""


@real
def test_what_a_killed_run_leaves_can_be_removed() -> None:
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as killed:
        assert killed.stdout is not None
        namespace, forwarder, sleeper = json.loads(killed.stdout.readline())
        assert namespace not in remove_orphans(), "its owner is alive"
        killed.kill()
    assert eventually(lambda: not exists(forwarder))
    remove_orphans()
    assert not (NAMESPACES / namespace).exists()
    assert eventually(lambda: not exists(sleeper))


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


def test_nothing_is_missing() -> None:
    require_means(lambda: 0, Path("/"), lambda command: command)
