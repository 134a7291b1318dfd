"""The forwarder's process: it is started with both ends of a link, stopped, and tells what it counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from swarm.links.devices import Pair, join, kernel_drops, open_tun
from swarm.links.namespace import LinkError, ip
from swarm.links.profiles import LinkSpec

STOP_S = 5.0


class TunLink:
    """Carries packets between a pair's TUN devices, by their descriptors, for as long as it runs.

    Raises LinkError where the process does not start.
    """

    def __init__(self, pair: Pair, client: int, server: int) -> None:
        self.report: dict[str, Any] = {}
        """What the forwarder counted, by direction, once it was stopped: see `Lane.report`."""
        self._pair = pair
        self._process = _start(pair.spec, client, server)

    @property
    def pid(self) -> int:
        """The process that carries the packets."""
        return self._process.pid

    def check(self) -> None:
        """Raises LinkError where the forwarder has died, before or while it was stopped."""
        code = self._process.poll()
        if code is not None and not self.report:
            raise LinkError(
                f"{self._pair.name} broke: its forwarder ended with exit code {code}; what was sent is lost"
            )

    def stop(self) -> None:
        """End the process, and with it the devices; fills `report`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        drops = {}
        for way, sender in (("up", self._pair.client), ("down", self._pair.server)):
            with suppress(LinkError):
                drops[way] = kernel_drops(sender)
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


def hold(device: str, held: ExitStack) -> int:
    """A new TUN device, there until `held` unwinds or, where the forwarder has it too, until that ends."""
    descriptor = open_tun(device)
    held.callback(os.close, descriptor)
    return descriptor


def lay_tun(pair: Pair, client: int, server: int, undo: ExitStack) -> TunLink:
    """Take both devices to where they belong, give them addresses and routes, and carry from now on."""
    for end in (pair.client, pair.server):
        if end.namespace:
            ip("", "link", "set", "dev", end.device, "netns", end.namespace)
    join(pair)
    tun_link = TunLink(pair, client, server)
    undo.callback(tun_link.stop)
    return tun_link


def _start(spec: LinkSpec, client: int, server: int) -> subprocess.Popen[str]:
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
