"""Links by the kernel's emulator: its orders to the letter, and its parts joined with another queue."""

import json
import os

import pytest

from swarm.links import emulators, network
from swarm.links.emulators import qdisc
from swarm.links.namespace import ip
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile
from tests.swarm.links.means import ask, namespaces_of, real, serving

NARROW = LinkProfile("narrow", one_way_ms=1, mbit_per_s=100, queue_bytes=100_000)
POLICED = LinkProfile("policed", one_way_ms=1, mbit_per_s=100, burst_bytes=50_000)


def test_a_direction_is_one_order() -> None:
    wan = LinkProfile("wan", one_way_ms=7, mbit_per_s=210, queue_bytes=1_000_000)
    assert " ".join(qdisc("up", wan, 0.07)) == (
        # 1,000,000 bytes wait and 183,750 are on their way: 789.2 packets of 1,500.
        "qdisc add dev up root netem delay 7000us loss 0.07% rate 210000000bit -14 limit 790"
    )
    assert "loss" not in qdisc("down", wan, 0.0)


def test_without_a_rate_whatever_is_on_its_way_must_fit() -> None:
    words = qdisc("up", LinkProfile("near", one_way_ms=0.5), 0.0)
    assert " ".join(words) == "qdisc add dev up root netem delay 500us limit 100000"


@real
def test_both_directions_go_through_the_middle_in_own_packets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tbf(device: str, profile: LinkProfile, loss_pct: float) -> list[str]:
        return f"qdisc add dev {device} root tbf rate 1gbit burst 100kb limit 1mb".split()

    monkeypatch.setattr(emulators, "qdisc", tbf)
    monkeypatch.setattr(network, "kernel_has_netem", lambda: True)
    with Network(["h1"], [NARROW, POLICED]) as made:
        assert made.emulator_of(NARROW) == "netem"
        assert made.emulator_of(POLICED) == "tun", "netem has a queue before every rate"
        address = made.addresses["h1"]["narrow"]["cubic"]
        with serving(made.server_command) as port:
            found = ask(lambda argv: made.command("h1", argv), address, port, 10**6)
        (middle,) = [name for name in namespaces_of(os.getpid()) if name.endswith("-link0")]
        sent = {port: packets(middle, port) for port in ("up", "down")}
    assert namespaces_of(os.getpid()) == []
    assert (found["bytes"], found["control"], found["server_control"]) == (10**6, "cubic", "cubic")
    assert sent["up"] >= 10**6 / 1500, "the kernel's big packets were cut before they came here"
    assert sent["down"] > 2


def packets(namespace: str, device: str) -> int:
    said = ip(namespace, "-s", "-j", "link", "show", "dev", device)
    return int(json.loads(said)[0]["stats64"]["tx"]["packets"])
