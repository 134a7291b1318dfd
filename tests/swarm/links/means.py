"""Whether links can be had here, a server and clients at either side of them, and what is left of them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from swarm.links.devices import open_tun
from swarm.links.namespace import NAMESPACES, LinkError, require_means

ROOT = Path(__file__).parents[3]
SERVER = """
import json, socket
listener = socket.create_server(("0.0.0.0", 0))
print(listener.getsockname()[1], flush=True)
while True:
    found, (peer, _) = listener.accept()
    with found:
        size = sum(iter(lambda: len(found.recv(65536)), 0))
        control = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
        found.sendall(json.dumps({"peer": peer, "bytes": size, "server_control": control}).encode())
"""
CLIENT = """
import json, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as found:
    found.sendall(bytes(int(sys.argv[3])))
    found.shutdown(socket.SHUT_WR)
    control = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
    print(json.dumps({**json.load(found.makefile()), "control": control}))
"""


def missing() -> str:
    """Why no link can be had here, or nothing."""
    try:
        require_means()
        with ExitStack() as held:
            open_tun(f"istest{os.getpid()}", held)
    except (LinkError, OSError) as error:
        return str(error)
    return ""


WHY_NOT = missing()
real = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
Place = Callable[[Sequence[str]], list[str]]
"""The command that runs a command somewhere."""


@contextmanager
def serving(place: Place) -> Iterator[int]:
    """A server on every address of a place; its port."""
    command = place([sys.executable, "-I", "-S", "-c", SERVER])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


def ask(place: Place, address: str, port: int, size: int = 1) -> dict[str, Any]:
    """What the server and a client elsewhere saw of their connection."""
    command = place([sys.executable, "-I", "-S", "-c", CLIENT, address, str(port), str(size)])
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def here(argv: Sequence[str]) -> list[str]:
    """This machine's own namespace, as a place."""
    return [*argv]


def exists(pid: int) -> bool:
    return Path("/proc", str(pid)).exists()


def namespaces_of(pid: int) -> list[str]:
    """The namespaces that a process has made and not removed."""
    return sorted(entry.name for entry in NAMESPACES.glob(f"inferswarm-{pid}-*"))


def has_device(name: str) -> bool:
    """Whether this machine's own namespace has a device."""
    return Path("/sys/class/net", name).exists()
