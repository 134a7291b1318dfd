"""A long, narrow or lossy path on one machine: clients in a network namespace, servers outside.

TCP goes from end to end, as over a real path: a proxy would hide loss and delay from its congestion window.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from swarm.links.namespace import (
    LinkError,
    inside,
    kernel_drops,
    open_tun,
    remove_namespace,
    remove_orphans,
    require_means,
    run,
    set_tcp,
)
from swarm.links.shaping import LinkSpec

__all__ = ["EmulatedLink", "LinkError", "LinkSpec", "remove_orphans"]

FIRST_ADDRESS, SLOTS = IPv4Address("198.18.0.0"), 2**15
"""198.18.0.0/15 is set apart for tests of networks (RFC 2544); every link has a slot of four addresses."""
WAITING_PACKETS = 20_000
"""So many packets wait in the kernel for the forwarder: the queue that drops is the forwarder's own."""
STOP_S = 5.0


class EmulatedLink:
    """A link while it is entered; at the end everything that ran in its namespace is killed.

    Clients reach nothing but `server_address`: servers outside that listen on it, or on 0.0.0.0.

    ```
    with EmulatedLink(LinkSpec(rtt_s=0.02, mbit_per_s=250, loss=0.001)) as link:
        subprocess.run(link.command(["curl", f"http://{link.server_address}:8010/v2/health/ready"]))
    print(link.report["up"]["dropped_by_loss"])
    ```
    """

    def __init__(self, spec: LinkSpec) -> None:
        self.spec = spec
        self.namespace = self.server_address = self.client_address = ""
        self.report: dict[str, Any] = {}
        """What the forwarder counted, by direction, once the link has ended: see `Lane.report`."""
        self._owner = 0
        self._undo = ExitStack()
        self._forwarder: subprocess.Popen[str] | None = None

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as a client of the link."""
        return inside(self.namespace, *argv)

    def __enter__(self) -> Self:
        require_means()
        remove_orphans()
        self._owner = os.getpid()
        with ExitStack() as undo:
            self._build(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._owner:
            # A fork of ours comes to its end; the link is not its own.
            return
        self._undo.close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises LinkError where the forwarder has died, before or while it was stopped."""
        assert self._forwarder is not None
        code = self._forwarder.poll()
        if code is not None and not self.report:
            raise LinkError(
                f"the emulated link broke: its forwarder ended with exit code {code}; what was sent is lost"
            )

    @property
    def forwarder_pid(self) -> int:
        """The process that carries the packets."""
        assert self._forwarder is not None
        return self._forwarder.pid

    def _build(self, undo: ExitStack) -> None:
        slot, server = _claim_slot()
        undo_devices = undo.enter_context(ExitStack())
        undo_devices.callback(os.close, server)
        near, far = f"islink{slot}", f"islink{slot}c"
        client = open_tun(far)
        undo_devices.callback(os.close, client)
        self.namespace = f"inferswarm-{os.getpid()}-{slot}"
        self.server_address = str(FIRST_ADDRESS + 4 * slot + 1)
        self.client_address = str(FIRST_ADDRESS + 4 * slot + 2)
        run("ip", "netns", "add", self.namespace)
        undo.callback(remove_namespace, self.namespace)
        set_tcp(self.namespace, self.spec.congestion_control, self.spec.slow_start_after_idle)
        run("ip", "link", "set", "dev", far, "netns", self.namespace)
        run("ip", "-n", self.namespace, "link", "set", "dev", "lo", "up")
        self._join(near, self.server_address, self.client_address)
        self._join(far, self.client_address, self.server_address, "-n", self.namespace)
        self._forwarder = _start_forwarder(self.spec, client, server)
        # From here on the forwarder alone holds the devices: they go when it goes.
        undo_devices.close()
        undo.callback(self._stop, near, far)

    def _join(self, device: str, own: str, peer: str, *place: str) -> None:
        """Give one end its address and its route to the other end."""
        # Without an address of its own IPv6 sends nothing by itself, and the counters count the load only.
        link = f"mtu {self.spec.mtu} txqueuelen {WAITING_PACKETS} addrgenmode none"
        run("ip", *place, "link", "set", "dev", device, *link.split())
        run("ip", *place, "link", "set", "dev", device, "up")
        run("ip", *place, "address", "add", f"{own}/32", "dev", device)
        # The server's end is in the machine's own namespace, whose settings are not ours to change.
        route = f"{peer}/32 dev {device} src {own} congctl {self.spec.congestion_control}"
        run("ip", *place, "route", "add", *route.split())

    def _stop(self, near: str, far: str) -> None:
        process = self._forwarder
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        drops = {}
        with suppress(LinkError):
            drops = {"up": kernel_drops(far, "-n", self.namespace), "down": kernel_drops(near)}
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with process.stdout as said, suppress(ValueError):
            self.report = json.loads(said.read())
        for way, count in drops.items():
            if way in self.report:
                self.report[way]["dropped_by_kernel"] = count


def _claim_slot() -> tuple[int, int]:
    """A free slot and the device that holds it; a random one, so that addresses are not soon used again."""
    for slot in random.sample(range(SLOTS), 100):
        with suppress(FileExistsError):
            return slot, open_tun(f"islink{slot}")
    raise LinkError("no address is free for an emulated link: end some of the links that are open")


def _start_forwarder(spec: LinkSpec, client: int, server: int) -> subprocess.Popen[str]:
    order = json.dumps({"client": client, "server": server, **spec.lanes()})
    script = Path(__file__).with_name("forwarder.py")
    # A session of its own: Ctrl-C in the terminal must reach the load first, and its path last.
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), order],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(client, server),
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() == "ready\n":
        return process
    with process:
        process.kill()
    raise LinkError(
        f"the emulated link's forwarder did not start: it ended with exit code {process.returncode}"
    )
