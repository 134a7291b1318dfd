"""Places of a drill's own: mounts with other names, network namespaces with few ports or with one link."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.links.namespace import add_namespace, inside, ip, run

if TYPE_CHECKING:
    from tests.drills.rig import Rig

NAME = "drilled.invalid"
SERVER, CLIENT = "198.18.200.1", "198.18.200.2"
FIRST_PORT = 40_000


def with_hosts(folder: Path, known: bool) -> list[str]:
    """The prefix of a command whose names come from a file of the drill's alone; NAME is in it or not."""
    hosts, servers = folder / "hosts", folder / "resolv.conf"
    lines = ["127.0.0.1 localhost", *([f"127.0.0.1 {NAME}"] if known else [])]
    hosts.write_text("\n".join(lines) + "\n")
    # Nobody answers there, and that at once.
    servers.write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
    binds = f"mount --bind {hosts} /etc/hosts && mount --bind {servers} /etc/resolv.conf"
    return ["unshare", "--mount", "sh", "-c", f'{binds} && exec "$@"', "sh"]


def in_place(rig: Rig, ports: int) -> list[str]:
    """The prefix of a command in a network namespace with so many local ports, none reused for a minute."""
    namespace = add_namespace("drill", rig.undo)
    settings = {
        "net.ipv4.ip_local_port_range": f"{FIRST_PORT} {FIRST_PORT + ports - 1}",
        "net.ipv4.tcp_tw_reuse": "0",
    }
    for name, value in settings.items():
        run(*inside(namespace, "sysctl", "-q", "-w", f"{name}={value}"))
    return inside(namespace)


class Apart:
    """A network namespace for clients with one way out, to this machine's own namespace."""

    def __init__(self, undo: ExitStack) -> None:
        self._place = add_namespace("drill", undo)
        self._device = f"drill{os.getpid()}"
        ip("", "link", "add", self._device, "type", "veth", "peer", "name", "out", "netns", self._place)
        for namespace, device, address in (("", self._device, SERVER), (self._place, "out", CLIENT)):
            ip(namespace, "address", "add", f"{address}/30", "dev", device)
            ip(namespace, "link", "set", "dev", device, "up")
        self.server_address, self.prefix = SERVER, inside(self._place)

    def cut(self) -> None:
        """Nothing comes through: the far end is down, and the client is not told."""
        ip("", "link", "set", "dev", self._device, "down")

    def heal(self) -> None:
        """As before."""
        ip("", "link", "set", "dev", self._device, "up")
