"""Networks, for real: who reaches whom by which address, and that nothing is left of them."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.links import devices, namespace
from swarm.links.namespace import NAMESPACES, LinkError, kernel_has, remove_orphans, run
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile
from swarm.owner import identity, started
from tests.processes import eventually
from tests.swarm.links.means import ROOT, Place, ask, exists, has_device, here, namespaces_of, real, serving

LAN = LinkProfile("lan")
QUICK = LinkProfile("quick", one_way_ms=1, mbit_per_s=100, queue_bytes=100_000, congestion_control="bbr")
HOSTS = ["h1", "h2"]
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
BBR = pytest.mark.skipif(not kernel_has("bbr"), reason="this kernel has no bbr")


@pytest.fixture(scope="module")
def made() -> Iterator[Network]:
    with Network(HOSTS, [LAN, QUICK]) as found:
        yield found


@pytest.fixture(scope="module")
def port(made: Network) -> Iterator[int]:
    with serving(made.server_command) as found:
        yield found


def at(network: Network, host: str) -> Place:
    return lambda argv: network.command(host, argv)


@real
@BBR
def test_every_address_has_its_congestion_control_and_every_link_a_client(made: Network, port: int) -> None:
    clients: dict[tuple[str, str], set[str]] = {}
    servers = []
    for host, link in itertools.product(HOSTS, ["lan", "quick"]):
        addresses = made.addresses[host][link]
        assert [*addresses] == (["cubic", "bbr"] if link == "lan" else ["bbr", "cubic"])
        for control, address in addresses.items():
            found = ask(at(made, host), address, port, 30_000)
            assert (found["bytes"], found["control"]) == (30_000, control)
            assert found["server_control"] == next(iter(addresses)), "the profile's own"
            clients.setdefault((host, link), set()).add(found["peer"])
            servers.append(address)
    assert len(set(servers)) == 8
    assert [len(peers) for peers in clients.values()] == [1, 1, 1, 1]
    assert len(set.union(*clients.values())) == 4


@real
def test_this_machine_reaches_the_servers_and_the_hosts_this_machine(made: Network, port: int) -> None:
    assert ask(here, made.server_address, port)["peer"] == made.control_address
    peers = {ask(at(made, host), made.server_address, port)["peer"] for host in HOSTS}
    with serving(here) as own:
        found = [ask(at(made, host), made.control_address, own) for host in HOSTS]
        assert {one["peer"] for one in found} == peers
        assert ask(made.server_command, made.control_address, own)["peer"] == made.server_address
    assert len({*peers, made.control_address, made.server_address}) == 4


@real
def test_only_what_is_emulated_has_an_emulator(made: Network) -> None:
    assert made.emulator_of(LAN) == "none"
    assert made.emulator_of(QUICK) in ("tun", "netem")


@real
def test_settings_of_tcp_are_the_namespaces_own(made: Network) -> None:
    names = ["tcp_congestion_control", "tcp_slow_start_after_idle", "ip_forward"]
    command = ["cat", *(f"/proc/sys/net/ipv4/{name}" for name in names)]
    for place in (made.server_command, at(made, "h1"), at(made, "h2")):
        said = subprocess.run(place(command), stdout=subprocess.PIPE, text=True, check=True)
        assert said.stdout.split() == ["cubic", "1", "0"]


@real
def test_two_networks_at_once_do_not_meet(made: Network, port: int) -> None:
    with Network(["h1"], [LAN]) as other, serving(other.server_command) as beside:
        assert other.control_address != made.control_address
        address = other.addresses["h1"]["lan"]["cubic"]
        assert address == made.addresses["h1"]["lan"]["cubic"]
        assert ask(at(other, "h1"), address, beside)["bytes"] == 1
        assert ask(at(made, "h1"), address, port)["bytes"] == 1


def devices_of(network: Network) -> list[str]:
    """This machine's own devices that may belong to a network."""
    slot = network.control_address.split(".")[2]
    names = [f"iscontrol{slot}", f"is{slot}link0", f"is{slot}link0c", f"is{slot}link1", f"is{slot}link1c"]
    return [name for name in names if has_device(name)]


@real
def test_nothing_is_left_after_an_exception_not_even_servers(made: Network) -> None:
    before, forwarding = namespaces_of(os.getpid()), FORWARDING.read_text()
    other = Network(["h1"], [LAN, QUICK])
    sleepers = []

    def load() -> None:
        with other:
            places = (other.server_command, at(other, "h1"))
            sleepers.extend(subprocess.Popen(place(["sleep", "100"])) for place in places)
            assert len(namespaces_of(os.getpid())) == len(before) + 2
            assert len(devices_of(other)) == 1
            assert FORWARDING.read_text() == forwarding
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load()
    assert namespaces_of(os.getpid()) == before
    assert devices_of(other) == []
    assert [sleeper.wait(10) for sleeper in sleepers] == [-signal.SIGKILL, -signal.SIGKILL]
    assert not any(exists(tun_link.process.pid) for tun_link in other.tun_links)


@real
@pytest.mark.parametrize("error", [LinkError, KeyboardInterrupt])
@pytest.mark.parametrize("calls", [0, 16, 33])
def test_a_broken_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch, calls: int, error: type) -> None:
    before, made = namespaces_of(os.getpid()), itertools.count()

    def breaking(*argv: str) -> str:
        if next(made) == calls:
            raise error("it broke")
        return run(*argv)

    other = Network(["h1"], [LAN, QUICK])
    monkeypatch.setattr(namespace, "run", breaking)
    with pytest.raises(error, match="it broke"), other:
        raise AssertionError(f"the whole build makes {next(made)} calls")
    assert namespaces_of(os.getpid()) == before
    assert not other.control_address or devices_of(other) == []
    assert not any(exists(tun_link.process.pid) for tun_link in other.tun_links)


@real
def test_a_forwarder_that_does_not_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = namespaces_of(os.getpid())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    other = Network(["h1"], [LAN, QUICK])
    with pytest.raises(LinkError, match="forwarder did not start: exit code 1"), other:
        raise AssertionError("it was entered")
    assert namespaces_of(os.getpid()) == before
    assert devices_of(other) == []


@real
def test_an_unknown_congestion_control_is_named(made: Network) -> None:
    before = namespaces_of(os.getpid())
    with pytest.raises(LinkError, match=r"congestion_control=guess: this kernel has .*reno"):
        Network(["h1"], [LinkProfile("odd", congestion_control="guess")]).__enter__()
    assert namespaces_of(os.getpid()) == before


@real
def test_a_forwarder_that_dies_is_told_and_leaves_nothing() -> None:
    other = Network(["h1"], [QUICK])

    def load() -> None:
        with other:
            other.check()
            os.kill(other.tun_links[0].process.pid, signal.SIGKILL)

    with pytest.raises(LinkError, match="the link quick of host h1 broke: its forwarder ended with"):
        load()
    assert devices_of(other) == []


@real
def test_a_fork_that_ends_leaves_the_network_alone(made: Network, port: int) -> None:
    made._owner += 1
    made.__exit__(None, None, None)
    made._owner -= 1
    assert ask(here, made.server_address, port)["bytes"] == 1


KILLED = """
import json, os, subprocess, time
from swarm.links import network
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile
network.kernel_has_netem = lambda: False
quick = LinkProfile("quick", one_way_ms=1)
with Network(["h1", "h2"], [LinkProfile("lan"), quick]) as network:
    places = [network.server_command, lambda argv: network.command("h1", argv)]
    sleepers = [subprocess.Popen(place(["sleep", "100"])) for place in places]
    pids = [process.pid for process in [*(one.process for one in network.tun_links), *sleepers]]
    print(json.dumps([network.control_address, pids]), flush=True)
    time.sleep(100)
"""


@real
def test_what_a_killed_maker_leaves_can_be_removed() -> None:
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as killed:
        assert killed.stdout is not None
        address, pids = json.loads(killed.stdout.readline())
        left = namespaces_of(killed.pid)
        assert len(left) == 3
        assert not {*left} & {*remove_orphans()}, "their maker is alive"
        assert remove_orphans(user=lambda: 1000) == []
        killed.kill()
    device = f"iscontrol{address.split('.')[2]}"
    assert has_device(device)
    assert {*left} <= {*remove_orphans()}
    assert namespaces_of(killed.pid) == []
    assert eventually(lambda: not has_device(device))
    assert eventually(lambda: not any(exists(pid) for pid in pids))


@real
def test_a_process_id_that_came_again_does_not_keep_what_its_first_owner_left() -> None:
    own = f"inferswarm-{identity()}-test"
    older = own.replace(f"-{started(os.getpid())}-", "-1-")
    for name in (own, older):
        run("ip", "netns", "add", name)
    try:
        assert older in remove_orphans()
        assert (NAMESPACES / own).exists()
    finally:
        run("ip", "netns", "delete", own)


def test_nobody_but_root_touches_anything() -> None:
    assert remove_orphans(lambda: 1000) == []


def test_a_module_that_the_kernel_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(namespace: str, *words: str) -> str:
        raise LinkError("`ip link add` failed: Error: Unknown device type.")

    monkeypatch.setattr(devices, "ip", lacking)
    with pytest.raises(LinkError, match=r"needs the kernel's module bridge: load it \(modprobe bridge\)"):
        devices.add_device("", "x", "bridge")


def test_a_command_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LinkError, match="needs the command `tc`: install the package iproute2"):
        run("tc", "qdisc")


def test_too_many_hosts_are_refused() -> None:
    with pytest.raises(UsageError) as raised:
        Network(["h"] * 251, [])
    assert str(raised.value) == "251 hosts on one machine: at most 250 are supported"


def test_a_command_that_does_not_end_is_no_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "COMMAND_S", 0.2)
    with pytest.raises(LinkError, match=r"`sleep 30` did not end within 0\.2 s"):
        run("sleep", "30")
