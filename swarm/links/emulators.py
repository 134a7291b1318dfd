"""A pair of ends becomes a link: by our forwarder's process, or by the kernel's own emulator.

That one, `tc … netem`, delays, loses and shapes in a namespace in the middle: on the sender's own device TCP
is told of every drop, and takes it for its own full queue. Written without access to a kernel with netem:
tested are the commands, and their wiring with another queue (tbf).
"""

import json
import math
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from swarm.links.devices import MTU, End, Pair, add_device, add_veth, join
from swarm.links.namespace import LinkError, add_namespace, ip, run
from swarm.links.profiles import LinkProfile

STOP_S = 5.0
UNLIMITED_PACKETS = 100_000
"""Without a rate nothing queues, but packets under way must fit."""
ETHERNET_BYTES = 14


class TunLink:
    """Carries packets between a pair's TUN devices, by their descriptors, for as long as it runs.

    Raises LinkError where the process does not start.
    """

    def __init__(self, pair: Pair, client: int, server: int) -> None:
        self._name = pair.name
        order = json.dumps({"client": client, "server": server, **pair.profile.lanes(pair.seed)})
        script = Path(__file__).with_name("forwarder.py")
        # A session of its own: Ctrl-C in the terminal must reach the load first, and its path last.
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(client, server),
            start_new_session=True,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            with self.process as failed:
                failed.kill()
            raise LinkError(f"the emulated link's forwarder did not start: exit code {failed.returncode}")

    def check(self) -> None:
        """Raises LinkError where the forwarder has died, before or while it was stopped."""
        if code := self.process.poll():
            raise LinkError(
                f"{self._name} broke: its forwarder ended with exit code {code}; packets under way are lost"
            )

    def stop(self) -> None:
        """End the process, and with it the devices."""
        try:
            self.process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


def lay_tun(pair: Pair, client: int, server: int, undo: ExitStack) -> TunLink:
    """Take both devices to where they belong, give them addresses and routes, and carry from now on."""
    for end in (pair.client, pair.server):
        if end.namespace:
            ip("", "link", "set", "dev", end.device, "netns", end.namespace)
    join(pair)
    tun_link = TunLink(pair, client, server)
    undo.callback(tun_link.stop)
    return tun_link


def kernel_has_netem() -> bool:
    """Whether `tc … netem` works here, tried in a namespace that goes at once."""
    with ExitStack() as undo:
        tried = add_namespace("netem", undo)
        try:
            run("tc", "-n", tried, *qdisc("lo", LinkProfile("", one_way_ms=0.5), 0.0))
        except LinkError:
            return False
    return True


def qdisc(device: str, profile: LinkProfile, loss_pct: float) -> list[str]:
    """The words for `tc` that make a device one direction of a link.

    >>> wan = LinkProfile("wan", one_way_ms=7, mbit_per_s=210, queue_bytes=1_000_000)
    >>> " ".join(qdisc("up", wan, 0.07))
    'qdisc add dev up root netem delay 7000us loss 0.07% rate 210000000bit -14 limit 790'
    """
    words = f"qdisc add dev {device} root netem delay {profile.one_way_ms * 1e3:.0f}us"
    if loss_pct:
        words += f" loss {loss_pct:g}%"
    if not profile.mbit_per_s:
        return f"{words} limit {UNLIMITED_PACKETS}".split()
    # netem's limit holds for what waits and for what is on its way, in packets; the rate counts IP bytes.
    flying_bytes = profile.mbit_per_s * 1e3 / 8 * profile.one_way_ms
    packets = math.ceil((profile.queue_bytes + flying_bytes) / MTU)
    return f"{words} rate {profile.mbit_per_s * 1e6:.0f}bit -{ETHERNET_BYTES} limit {packets}".split()


def lay_netem(pair: Pair, suffix: str, undo: ExitStack) -> None:
    """Both ends' devices and a bridge between that is the link: `up` leads to the server, `down` back."""
    middle = add_namespace(suffix, undo)
    add_device(middle, "middle", "bridge")
    ip(middle, "link", "set", "dev", "middle", "addrgenmode", "none", "up")
    for port, end, loss_pct in (("up", pair.server, pair.profile.loss_pct), ("down", pair.client, 0.0)):
        add_veth(end, End(middle, port))
        # Or what counts as one packet here would be dozens: the kernel cuts big ones at a real wire only.
        ip(end.namespace, "link", "set", "dev", end.device, "gso_max_segs", "1")
        ip(middle, "link", "set", "dev", port, "mtu", str(MTU), "addrgenmode", "none")
        ip(middle, "link", "set", "dev", port, "master", "middle", "up")
        run("tc", "-n", middle, *qdisc(port, pair.profile, loss_pct))
    join(pair)
