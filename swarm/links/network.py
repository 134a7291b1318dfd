"""Client hosts and servers on one machine, each in a network namespace, with emulated links between them.

TCP goes from end to end, as over a real path: a proxy would hide loss and delay from its congestion window.
"""

import itertools
import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from typing import Literal, Self

from swarm.errors import UsageError
from swarm.links.devices import MOST_HOSTS, ControlNet, End, Pair, add_veth, claim_slot, join, open_tun
from swarm.links.emulators import TunLink, kernel_has_netem, lay_netem, lay_tun
from swarm.links.namespace import (
    add_namespace,
    controls,
    inside,
    remove_orphans,
    require_means,
    set_congestion_control,
    undisturbed,
)
from swarm.links.profiles import LinkProfile

FIRST_ADDRESS, SLOT = IPv4Address("198.18.0.0"), 8
"""In 198.18.0.0/15, which is reserved for network tests (RFC 2544): a slot of eight for each link.

Visible only in a network's own namespaces, so every network begins with the same. A network whose servers are
here has its own slot.
"""
CONGESTION_CONTROL = "cubic"
"""Every namespace's own congestion control, for traffic that does not use a link."""
NUMBERS = itertools.count(1)
"""One process may build several networks: the names of namespaces carry this number."""


class Network:
    """A network while it is entered; at the end everything that ran in its namespaces is killed.

    One namespace for the servers, one for each host, the control net between them and this machine, and a
    link of each profile between each host and the servers.

    With `servers_here` there is one host with one link, whose other end is this machine. The host reaches
    nothing but the link's addresses: servers that listen on them, or on 0.0.0.0.

    ```
    with Network(["h1", "h2"], profiles_named(["lan", "wan-a100"], read_profiles())) as network:
        server = subprocess.Popen(network.server_command(["python", "-m", "server", "up"]))
        address = network.addresses["h1"]["wan-a100"]["cubic"]
        subprocess.run(network.command("h1", ["curl", f"http://{address}:8010/v2/health/ready"]))
    ```
    """

    def __init__(
        self, hosts: Sequence[str], profiles: Sequence[LinkProfile], servers_here: bool = False
    ) -> None:
        if len(hosts) > MOST_HOSTS:
            raise UsageError(f"{len(hosts)} hosts on one machine: at most {MOST_HOSTS} are supported")
        self.hosts, self.profiles = tuple(hosts), tuple(profiles)
        self._servers_here = servers_here
        self._emulator: Literal["", "tun", "netem"] = ""
        self.control_address = self.server_address = ""
        self._servers, self._places = "", dict[str, str]()
        self.addresses: dict[str, dict[str, dict[str, str]]] = {host: {} for host in self.hosts}
        """The servers' address by host, link and the client's TCP congestion control.

        A link's addresses share its devices; the first has the congestion control of its profile.
        """
        self.tun_links: list[TunLink] = []
        self._owner = 0
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        remove_orphans()
        self._owner = os.getpid()
        try:
            self._build()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if os.getpid() != self._owner:
            # One of our forks ends; what we built does not belong to it.
            return
        self._close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises LinkError where a forwarder has died, before or while it was stopped."""
        for tun_link in self.tun_links:
            tun_link.check()

    def _close(self) -> None:
        with undisturbed():
            self._undo.close()

    def address(self, host: str, profile: LinkProfile) -> str:
        """Where a host reaches the servers over a link, by the profile's own congestion control."""
        return next(iter(self.addresses[host][profile.name].values()))

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` on a host."""
        return inside(self._places[host], *argv)

    def server_command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` where the servers are."""
        return inside(self._servers, *argv)

    def emulator_of(self, profile: LinkProfile) -> str:
        """`tun`, `netem`, or `none` for a link that is what it is."""
        if not profile.emulated:
            return "none"
        # netem has a queue before every rate.
        return "tun" if profile.burst_bytes else self._emulator

    def _require(self) -> None:
        require_means(tun=None)
        if any(profile.emulated for profile in self.profiles):
            self._emulator = "netem" if kernel_has_netem() else "tun"
        if any(self.emulator_of(profile) == "tun" for profile in self.profiles):
            require_means()

    def _build(self) -> None:
        self._require()
        number = next(NUMBERS)
        if not self._servers_here:
            self._servers = self._add_place(f"{number}-servers")
        places = [self._add_place(f"{number}-host{index}") for index in range(len(self.hosts))]
        self._places = dict(zip(self.hosts, places, strict=True))
        if self._servers_here:
            slot = first = claim_slot(places[0])
        else:
            net = ControlNet(self._servers, places)
            slot, first = net.slot, 0
            self.control_address, self.server_address = net.outside_address, net.server_address
        pairs = itertools.product(self.hosts, self.profiles)
        for index, (host, profile) in enumerate(pairs, start=first):
            pair = self._pair(slot, index, host, profile)
            self._lay(pair, f"{number}-link{index}")
            self.addresses[host][profile.name] = dict(zip(pair.controls, pair.server.addresses, strict=True))

    def _add_place(self, suffix: str) -> str:
        namespace = add_namespace(suffix, self._undo)
        set_congestion_control(namespace, CONGESTION_CONTROL)
        return namespace

    def _pair(self, slot: int, index: int, host: str, profile: LinkProfile) -> Pair:
        """The ends of a link: the first address after the server's own is the client's."""
        offered = tuple(controls(profile.congestion_control))
        server, client, *more = (str(FIRST_ADDRESS + SLOT * index + number) for number in range(1, SLOT))
        # The devices' names hold the net's slot: TUN devices are created among this machine's own.
        return Pair(
            f"the link {profile.name} of host {host}",
            profile,
            # Other packets are lost on each link and in each study: repeats must not share their luck.
            secrets.randbits(32),
            End(self._places[host], f"is{slot}link{index}c", (client,)),
            End(self._servers, f"is{slot}link{index}", (server, *more[: len(offered) - 1])),
            offered,
        )

    def _lay(self, pair: Pair, suffix: str) -> None:
        emulator = self.emulator_of(pair.profile)
        if emulator == "tun":
            # Once the forwarder runs it alone holds the devices.
            with ExitStack() as held:
                client, server = (open_tun(end.device, held) for end in (pair.client, pair.server))
                self.tun_links.append(lay_tun(pair, client, server, self._undo))
        elif emulator == "netem":
            lay_netem(pair, suffix, self._undo)
        else:
            add_veth(pair.server, pair.client)
            join(pair)
