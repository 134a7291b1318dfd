"""The control net: a bridge that reaches every namespace of a network, and this machine by one address.

It lies in the servers' namespace: a firewall of this machine's own (Docker's, say) would filter a bridge
outside, and with its namespace the bridge goes as well, and this machine's device with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from ipaddress import IPv4Address

from swarm.links.devices import End, add_device, add_veth, exists
from swarm.links.namespace import LinkError, ip

FIRST_ADDRESS, SLOTS = IPv4Address("198.19.0.0"), 256
"""Every control net has a slot of 256 addresses."""
OUTSIDE, SERVERS, FIRST_HOST, MOST_HOSTS = 1, 2, 3, 250
DEVICE = "control"


class ControlNet:
    """A control net from when it is made until its namespaces are removed.

    `servers` and `hosts` are namespaces. Raises LinkError where it cannot be made.
    """

    def __init__(self, servers: str, hosts: Sequence[str]) -> None:
        self.slot = _claim_slot(servers)
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

    @property
    def outside_address(self) -> str:
        """This machine's own address."""
        return self._address(OUTSIDE)

    @property
    def server_address(self) -> str:
        """The servers' namespace's address."""
        return self._address(SERVERS)

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
    """The name of this machine's device on a control net; whoever has made it has the slot."""
    return f"iscontrol{slot}"


def _claim_slot(servers: str) -> int:
    """A free slot, whose device is made; a random one, so that addresses are not soon used again."""
    for slot in random.sample(range(SLOTS), SLOTS):
        device = outside_device(slot)
        if exists(device):
            continue
        try:
            add_veth(End("", device), End(servers, "outside"))
        except LinkError:
            if exists(device):
                continue
            raise
        return slot
    raise LinkError("no address is free for a control net: end some of the networks that are open")
