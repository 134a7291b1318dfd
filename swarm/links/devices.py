"""Network devices: TUN devices, pairs of virtual Ethernet, addresses and routes of the two ends of a link."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from swarm.links.namespace import TUN, LinkError, ip
from swarm.links.profiles import LinkSpec

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
WAITING_PACKETS = 20_000
"""So many packets wait in the kernel for the forwarder: the queue that drops is the forwarder's own."""


@dataclass(frozen=True)
class End:
    """One end of a link: a device, the namespace it belongs in ("" is our own), and its addresses there."""

    namespace: str
    device: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A link to be laid; `name` is how an error says which.

    Each of the server's addresses has a congestion control on the client's side, in the order of `controls`.
    """

    name: str
    spec: LinkSpec
    client: End
    server: End
    controls: tuple[str, ...]


def open_tun(name: str) -> int:
    """A new TUN device, which lives for as long as its descriptor is open somewhere.

    One read or write is one IP packet. Raises FileExistsError where the name is taken.
    """
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        if exists(name):
            raise FileExistsError(name) from None
        raise LinkError(f"cannot make the network device {name}: {error.strerror}") from None
    return descriptor


def exists(device: str) -> bool:
    """Whether our own namespace has a device of that name."""
    return Path("/sys/class/net", device).exists()


def add_device(namespace: str, name: str, kind: str, *words: str) -> None:
    """Make a device of a kind (`veth`, `bridge`). Raises LinkError, naming the module the kernel lacks."""
    try:
        ip(namespace, "link", "add", "name", name, "type", kind, *words)
    except LinkError as error:
        if "Unknown device type" not in str(error):
            raise
        raise LinkError(
            f"an emulated link needs the kernel's module {kind}: load it (modprobe {kind})"
        ) from None


def add_veth(near: End, far: End) -> None:
    """A pair of virtual Ethernet devices, each born where it belongs."""
    add_device(near.namespace, near.device, "veth", "peer", "name", far.device, "netns", far.namespace)


def join(pair: Pair) -> None:
    """Give both ends, whose devices are there, their addresses and their routes to each other."""
    spec, client, server = pair.spec, pair.client, pair.server
    _attach(client, dict(zip(server.addresses, pair.controls, strict=True)), spec.mtu)
    # The server's end may be in the machine's own namespace, whose settings are not ours to change.
    _attach(server, dict.fromkeys(client.addresses, spec.congestion_control), spec.mtu)


def _attach(end: End, routes: dict[str, str], mtu: int) -> None:
    # Without an address of its own IPv6 sends nothing by itself, and the counters count the load only.
    settings = f"mtu {mtu} txqueuelen {WAITING_PACKETS} addrgenmode none"
    ip(end.namespace, "link", "set", "dev", end.device, *settings.split())
    ip(end.namespace, "link", "set", "dev", end.device, "up")
    for address in end.addresses:
        ip(end.namespace, "address", "add", f"{address}/32", "dev", end.device)
    for peer, control in routes.items():
        route = f"{peer}/32 dev {end.device} src {end.addresses[0]} congctl {control}"
        ip(end.namespace, "route", "add", *route.split())


def kernel_drops(end: End) -> int:
    """Packets that nobody read from the end's device in time."""
    found = json.loads(ip(end.namespace, "-s", "-j", "link", "show", "dev", end.device))
    return int(found[0]["stats64"]["tx"]["dropped"])
