"""Client hosts and servers on one machine, each in a network namespace, with emulated links between them.

A single link has its clients in a namespace and its servers outside. TCP goes from end to end, as
over a real path: a proxy would hide loss and delay from its congestion window.
"""

import itertools
import os
import random
import secrets
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address
from typing import Literal, Self

from swarm.errors import UsageError
from swarm.links.devices import MOST_HOSTS, ControlNet, End, Pair, add_veth, join, open_tun
from swarm.links.emulators import TunLink, kernel_has_netem, lay_netem, lay_tun
from swarm.links.namespace import (
    LinkError,
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
"""Seen in a network's own namespaces only, so every network begins with the same."""
CONGESTION_CONTROL = "cubic"
"""Every namespace's own, for whatever does not go over a link."""
NUMBERS = itertools.count(1)
"""One process may build several networks: its namespaces' names say which."""
SINGLE_LINKS = 2**14
"""In 198.18.0.0/15, which is set apart for tests of networks (RFC 2544): a slot of four addresses each."""


class Built:
    """Built in `_build` when entered; undone at the end or where the building fails."""

    def __init__(self) -> None:
        self._owner = 0
        self._undo = ExitStack()
        self.tun_links: list[TunLink] = []

    def __enter__(self) -> Self:
        remove_orphans()
        self._owner = os.getpid()
        try:
            self._build(self._undo)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if os.getpid() != self._owner:
            # A fork of ours comes to its end; what we built is not its own.
            return
        self._close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises LinkError where a forwarder has died, before or while it was stopped."""
        for tun_link in self.tun_links:
            tun_link.check()

    def _build(self, undo: ExitStack) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        with undisturbed():
            self._undo.close()


class Network(Built):
    """A network while it is entered; at the end everything that ran in its namespaces is killed.

    One namespace for the servers, one for each host, the control net between them and this machine, and a
    link of each profile between each host and the servers.

    ```
    with Network(["h1", "h2"], profiles_named(["lan", "wan-a100"], read_profiles())) as network:
        server = subprocess.Popen(network.server_command(["python", "-m", "server", "up"]))
        address = network.addresses["h1"]["wan-a100"]["cubic"]
        subprocess.run(network.command("h1", ["curl", f"http://{address}:8010/v2/health/ready"]))
    ```
    """

    def __init__(
        self, hosts: Sequence[str], profiles: Sequence[LinkProfile], emulator: Literal["", "tun"] = ""
    ) -> None:
        super().__init__()
        if len(hosts) > MOST_HOSTS:
            raise UsageError(f"{len(hosts)} hosts on one machine: choose at most {MOST_HOSTS}")
        self.hosts, self.profiles = tuple(hosts), tuple(profiles)
        self.emulator: str = emulator
        """What emulates, `tun` or `netem`, once it is entered."""
        self.control_address = self.server_address = ""
        self._servers, self._places = "", dict.fromkeys(self.hosts, "")
        self.addresses: dict[str, dict[str, dict[str, str]]] = {host: {} for host in self.hosts}
        """By host, link and TCP's congestion control on the client's side: the servers' address.

        A link's addresses share its devices; the first one has the congestion control of its profile.
        """

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` on a host."""
        return inside(self._places[host], *argv)

    def server_command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` where the servers are."""
        return inside(self._servers, *argv)

    def emulator_of(self, profile: LinkProfile) -> str:
        """`tun`, `netem`, or `none` for a link that is what it is."""
        return self.emulator if profile.emulated else "none"

    def _require(self) -> None:
        require_means(tun=None)
        if not any(profile.emulated for profile in self.profiles):
            self.emulator = "none"
        elif not self.emulator:
            self.emulator = "netem" if kernel_has_netem() else "tun"
        if self.emulator == "tun":
            require_means()

    def _build(self, undo: ExitStack) -> None:
        self._require()
        number = next(NUMBERS)
        self._servers = _add_place(f"{number}-servers", undo)
        for index, host in enumerate(self.hosts):
            self._places[host] = _add_place(f"{number}-host{index}", undo)
        net = ControlNet(self._servers, list(self._places.values()))
        self.control_address, self.server_address = net.outside_address, net.server_address
        for index, (host, profile) in enumerate(itertools.product(self.hosts, self.profiles)):
            pair = self._pair(index, host, profile, net.slot)
            self._lay(pair, profile, f"{number}-link{index}", undo)
            offered = zip(pair.controls, pair.server.addresses, strict=True)
            self.addresses[host][profile.name] = dict(offered)

    def _pair(self, index: int, host: str, profile: LinkProfile, slot: int) -> Pair:
        """The ends of a link: the first address after the server's own is the client's."""
        offered = tuple(controls(profile.congestion_control))
        server, client, *more = (str(FIRST_ADDRESS + SLOT * index + number) for number in range(1, SLOT))
        # The devices' names hold the net's slot: TUN devices are born among this machine's own.
        return Pair(
            f"the link {profile.name} of host {host}",
            profile,
            # Other packets are lost on each link and in each study: repeats must not share their luck.
            secrets.randbits(32),
            End(self._places[host], f"is{slot}link{index}c", (client,)),
            End(self._servers, f"is{slot}link{index}", (server, *more[: len(offered) - 1])),
            offered,
        )

    def _lay(self, pair: Pair, profile: LinkProfile, suffix: str, undo: ExitStack) -> None:
        emulator = self.emulator_of(profile)
        if emulator == "tun":
            # Once the forwarder runs it alone holds the devices.
            with ExitStack() as held:
                client, server = (open_tun(end.device, held) for end in (pair.client, pair.server))
                self.tun_links.append(lay_tun(pair, client, server, undo))
        elif emulator == "netem":
            lay_netem(pair, suffix, undo)
        else:
            add_veth(pair.client, pair.server)
            join(pair)


def _add_place(suffix: str, undo: ExitStack) -> str:
    namespace = add_namespace(suffix, undo)
    set_congestion_control(namespace, CONGESTION_CONTROL)
    return namespace


class EmulatedLink(Built):
    """A link while it is entered; at the end everything that ran in its namespace is killed.

    Clients reach nothing but `server_address`: servers outside that listen on it, or on 0.0.0.0.

    ```
    with EmulatedLink(read_profiles()["home"]) as link:
        subprocess.run(link.command(["curl", f"http://{link.server_address}:8010/v2/health/ready"]))
    ```
    """

    def __init__(self, profile: LinkProfile, seed: int = 0) -> None:
        super().__init__()
        self._profile, self._seed = profile, seed
        self.namespace = self.server_address = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as a client of the link."""
        return inside(self.namespace, *argv)

    def _build(self, undo: ExitStack) -> None:
        require_means()
        # Once the forwarder runs it alone holds the devices: they go when it goes.
        with ExitStack() as held:
            slot, near = _claim_slot(held)
            far = open_tun(f"islink{slot}c", held)
            self.server_address = str(FIRST_ADDRESS + 4 * slot + 1)
            self.namespace = add_namespace(str(slot), undo)
            control = self._profile.congestion_control
            set_congestion_control(self.namespace, control)
            client = End(self.namespace, f"islink{slot}c", (str(FIRST_ADDRESS + 4 * slot + 2),))
            server = End("", f"islink{slot}", (self.server_address,))
            pair = Pair("the emulated link", self._profile, self._seed, client, server, (control,))
            self.tun_links.append(lay_tun(pair, far, near, undo))


def _claim_slot(held: ExitStack) -> tuple[int, int]:
    """A free slot and the device that holds it; a random one, so that addresses are not soon used again."""
    for slot in random.sample(range(SINGLE_LINKS), 100):
        with suppress(FileExistsError):
            return slot, open_tun(f"islink{slot}", held)
    raise LinkError("no address is free for an emulated link: end some of the links that are open")
