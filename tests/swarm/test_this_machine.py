"""Which servers run on this machine: by ids, by addresses, by who listens."""

import socket
from pathlib import Path

import psutil
import pytest

from server.hardware import machine as of_server
from swarm.this_machine import listener, machine_id, own_addresses, runs_here

OWN = frozenset({"127.0.0.1", "10.0.0.4", "fe80::1"})


def python(port: int) -> str:
    return "python3"


@pytest.mark.parametrize(
    ("addresses", "listens", "here"),
    [
        (["127.0.0.1"], "tritonserver", True),
        (["::1", "127.0.0.1"], "tritonserver", True),
        (["127.0.0.53"], "tritonserver", True),
        (["10.0.0.4"], "", True),  # another user's process, whose name is not told
        (["10.0.0.7"], "tritonserver", False),  # a process here that happens to listen at this port
        (["10.0.0.4", "10.0.0.7"], "", False),
        (["127.0.0.1"], "ssh", None),  # ssh -L
        (["127.0.0.1"], "kubectl", None),  # kubectl port-forward
        ([], "tritonserver", None),  # a name that cannot be resolved
    ],
)
def test_by_address(addresses: list[str], listens: str, here: bool | None) -> None:
    assert runs_here(addresses, 8002, own=OWN, listens=lambda port: listens) is here


def test_a_tunnel_to_a_service_that_tells_its_machine() -> None:
    """At a loopback address behind any forwarder; and this machine itself by the address of a bridge."""
    assert runs_here(["127.0.0.1"], 8002, "b", "a", OWN, python) is False
    assert runs_here(["172.17.0.2"], 8002, "a", "a", OWN, python) is True
    assert runs_here(["127.0.0.1"], 8002, "", "a", OWN, python) is True
    assert runs_here(["127.0.0.1"], 8002, "b", "", OWN, python) is True


def test_this_machine_is_the_same_for_both_sides(tmp_path: Path) -> None:
    assert machine_id() == of_server.machine_id()
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("5f0a4f9c-9a0c-4b57-8f0e-2f1c2b3a4d5e\n")
    assert machine_id(boot_id) == of_server.machine_id(boot_id)
    assert len(machine_id(boot_id)) == 16
    assert machine_id(tmp_path / "none") == of_server.machine_id(tmp_path / "none") == ""


def test_real_addresses_and_listeners() -> None:
    assert "127.0.0.1" in own_addresses()
    assert not any("%" in address for address in own_addresses())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listener(port) == psutil.Process().name()
    assert listener(port) == ""
