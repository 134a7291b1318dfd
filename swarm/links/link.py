"""A long, narrow or lossy path on one machine: clients in a network namespace, servers outside.

TCP goes from end to end, as over a real path: a proxy would hide loss and delay from its congestion window.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address
from typing import Any

from swarm.links.devices import End, Pair
from swarm.links.namespace import Built, LinkError, add_namespace, inside, remove_orphans, require_means
from swarm.links.profiles import LinkSpec
from swarm.links.tcp import set_tcp
from swarm.links.tun import Carrier, hold, lay_tun

__all__ = ["EmulatedLink", "LinkError", "LinkSpec", "remove_orphans"]

FIRST_ADDRESS, SLOTS = IPv4Address("198.18.0.0"), 2**14
"""198.18.0.0/15 is set apart for tests of networks (RFC 2544); every link has a slot of four addresses."""


class EmulatedLink(Built):
    """A link while it is entered; at the end everything that ran in its namespace is killed.

    Clients reach nothing but `server_address`: servers outside that listen on it, or on 0.0.0.0.

    ```
    with EmulatedLink(LinkSpec(rtt_s=0.02, mbit_per_s=250, loss=0.001)) as link:
        subprocess.run(link.command(["curl", f"http://{link.server_address}:8010/v2/health/ready"]))
    print(link.report["up"]["dropped_by_loss"])
    ```
    """

    def __init__(self, spec: LinkSpec) -> None:
        super().__init__()
        self.spec = spec
        self.namespace = self.server_address = self.client_address = ""
        self._carrier: Carrier | None = None

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as a client of the link."""
        return inside(self.namespace, *argv)

    @property
    def report(self) -> dict[str, Any]:
        """What the forwarder counted, by direction, once the link has ended: see `Lane.report`."""
        return self._carrier.report if self._carrier else {}

    @property
    def forwarder_pid(self) -> int:
        """The process that carries the packets."""
        assert self._carrier is not None
        return self._carrier.pid

    def check(self) -> None:
        """Raises LinkError where the forwarder has died, before or while it was stopped."""
        assert self._carrier is not None
        self._carrier.check()

    def _require(self) -> None:
        require_means()

    def _build(self, undo: ExitStack) -> None:
        # Once the forwarder runs it alone holds the devices: they go when it goes.
        with ExitStack() as held:
            slot, near = _claim_slot(held)
            far = hold(f"islink{slot}c", held)
            self.server_address = str(FIRST_ADDRESS + 4 * slot + 1)
            self.client_address = str(FIRST_ADDRESS + 4 * slot + 2)
            self.namespace = add_namespace(str(slot), undo)
            set_tcp(self.namespace, self.spec.congestion_control, self.spec.slow_start_after_idle)
            client = End(self.namespace, f"islink{slot}c", (self.client_address,))
            server = End("", f"islink{slot}", (self.server_address,))
            controls = (self.spec.congestion_control,)
            pair = Pair("the emulated link", self.spec, client, server, controls)
            self._carrier = lay_tun(pair, far, near, undo)


def _claim_slot(held: ExitStack) -> tuple[int, int]:
    """A free slot and the device that holds it; a random one, so that addresses are not soon used again."""
    for slot in random.sample(range(SLOTS), 100):
        with suppress(FileExistsError):
            return slot, hold(f"islink{slot}", held)
    raise LinkError("no address is free for an emulated link: end some of the links that are open")
