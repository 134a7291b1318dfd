"""Network devices: TUN devices, pairs of virtual Ethernet, addresses and routes of the two ends of a link.

And the control net: a bridge that reaches every namespace of a network, and this machine by one address. It
lies in the servers' namespace: a firewall of this machine's own (Docker's, say) would filter a bridge
outside, and with its namespace the bridge goes as well, and this machine's device with it.
"""

import fcntl
import os
import random
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from swarm.links.namespace import TUN, LinkError, ip
from swarm.links.profiles import LinkProfile

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
WAITING_PACKETS = 20_000
"""Packets that wait in the kernel for the forwarder: enough that only the forwarder's own queue drops."""
FIRST_ADDRESS, SLOTS = IPv4Address("198.19.0.0"), 256
"""Every network has a slot, and its control network that slot's 256 addresses."""
OUTSIDE, SERVERS, FIRST_HOST, MOST_HOSTS = 1, 2, 3, 250
DEVICE = "control"


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
    `seed` says which packets are lost.
    """

    name: str
    profile: LinkProfile
    seed: int
    client: End
    server: End
    controls: tuple[str, ...]


def open_tun(name: str, held: ExitStack) -> int:
    """The descriptor of a new TUN device, of which one read or write is a packet. Raises LinkError.

    It is there until `held` unwinds or, where the forwarder has it too, until that ends.
    """
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    held.callback(os.close, descriptor)
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
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
    """A pair of virtual Ethernet devices, each created in its namespace."""
    add_device(near.namespace, near.device, "veth", "peer", "name", far.device, "netns", far.namespace)


def join(pair: Pair) -> None:
    """Give both ends, whose devices are there, their addresses and their routes to each other."""
    client, server = pair.client, pair.server
    _attach(client, dict(zip(server.addresses, pair.controls, strict=True)))
    # The server's end may be in the machine's own namespace, whose settings are not ours to change.
    _attach(server, dict.fromkeys(client.addresses, pair.profile.congestion_control))


def _attach(end: End, routes: dict[str, str]) -> None:
    # Without an address of its own IPv6 sends nothing by itself, and the counters count the load only.
    settings = f"mtu {MTU} txqueuelen {WAITING_PACKETS} addrgenmode none"
    ip(end.namespace, "link", "set", "dev", end.device, *settings.split())
    ip(end.namespace, "link", "set", "dev", end.device, "up")
    for address in end.addresses:
        ip(end.namespace, "address", "add", f"{address}/32", "dev", end.device)
    for peer, control in routes.items():
        route = f"{peer}/32 dev {end.device} src {end.addresses[0]} congctl {control}"
        ip(end.namespace, "route", "add", *route.split())


class ControlNet:
    """A control net from when it is made until its namespaces are removed.

    `servers` and `hosts` are namespaces. Raises LinkError where it cannot be made.
    """

    def __init__(self, servers: str, hosts: Sequence[str]) -> None:
        self.slot = claim_slot(servers)
        self.outside_address, self.server_address = self._address(OUTSIDE), self._address(SERVERS)
        """This machine's address, and that of the servers' namespace."""
        add_device(servers, DEVICE, "bridge")
        self._plug(servers, "outside")
        self._open(servers, DEVICE, SERVERS)
        self._open("", outside_device(self.slot), OUTSIDE)
        for number, host in enumerate(hosts):
            add_veth(End(host, DEVICE), End(servers, f"host{number}"))
            self._plug(servers, f"host{number}")
            self._open(host, DEVICE, FIRST_HOST + number)
        for namespace in (servers, *hosts):
            # This machine's other addresses are reached as well.
            ip(namespace, "route", "add", "default", "via", self.outside_address)

    def _address(self, number: int) -> str:
        return str(FIRST_ADDRESS + 256 * self.slot + number)

    def _plug(self, servers: str, port: str) -> None:
        ip(servers, "link", "set", "dev", port, "addrgenmode", "none")
        ip(servers, "link", "set", "dev", port, "master", DEVICE, "up")

    def _open(self, namespace: str, device: str, number: int) -> None:
        ip(namespace, "link", "set", "dev", device, "addrgenmode", "none")
        ip(namespace, "address", "add", f"{self._address(number)}/24", "dev", device)
        ip(namespace, "link", "set", "dev", device, "up")


def outside_device(slot: int) -> str:
    """The name of this machine's device of a network; its creator has the slot."""
    return f"iscontrol{slot}"


def claim_slot(namespace: str) -> int:
    """A free slot, held by a device of this machine whose other end, `outside`, is in the namespace.

    A random one, so that addresses are not soon used again. Raises LinkError where none is free.
    """
    for slot in random.sample(range(SLOTS), SLOTS):
        device = outside_device(slot)
        if exists(device):
            continue
        try:
            add_veth(End("", device), End(namespace, "outside"))
        except LinkError:
            if exists(device):
                continue
            raise
        return slot
    raise LinkError("no address is free for another network: close some that are open")
