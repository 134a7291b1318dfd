"""Whether a server runs on this machine: by what it says of itself, its address, and who listens there."""

import hashlib
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import psutil

from users.endpoint import is_loopback

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Drawn by the kernel when it starts: containers of one machine have the same, two machines never."""
ID_LENGTH = 16
FORWARDERS = frozenset({"ssh", "autossh", "kubectl", "socat", "cloudflared", "chisel", "frpc", "ngrok"})
"""Programs that listen here and hand on to another machine."""


def machine_id(boot_id: Path = BOOT_ID) -> str:
    """Of this machine, as our services tell theirs: a hash, since nobody else need know the number itself.

    Empty where the kernel tells none. The same function stands in server/hardware/machine.py, which cannot
    import this one.
    """
    with suppress(OSError):
        return hashlib.sha256(boot_id.read_bytes().strip()).hexdigest()[:ID_LENGTH]
    return ""


def own_addresses() -> frozenset[str]:
    """The IP addresses of this machine's interfaces."""
    kinds = (socket.AF_INET, socket.AF_INET6)
    return frozenset(
        one.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family in kinds
    )


def listener(port: int) -> str:
    """The program that listens at a TCP port of this machine; empty where that cannot be seen."""
    with suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
                return str(psutil.Process(one.pid).name())
    return ""


def runs_here(
    addresses: Collection[str],
    port: int,
    told: str = "",
    machine: str = "",
    own: Collection[str] = frozenset(),
    listens: Callable[[int], str] = listener,
) -> bool | None:
    """Whether a server with these IP addresses runs on this machine; None where that is not known.

    `told` and `machine` are the ids of its machine and of this one. Without both, addresses decide: `own` are
    this machine's. Behind a local address a forwarder may stand, which is known by its program's name alone.

    >>> runs_here(["10.0.0.7"], 80, own=["10.0.0.4"]), runs_here(["127.0.0.1"], 80, "a", "b")
    (False, False)
    >>> [runs_here(["127.0.0.1"], 80, listens=lambda port: name) for name in ("python", "", "ssh")]
    [True, True, None]
    """
    if told and machine:
        return told == machine
    if not addresses:
        return None
    if not all(is_loopback(address) or address in own for address in addresses):
        return False
    return None if listens(port) in FORWARDERS else True
