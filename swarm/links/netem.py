"""Links by the kernel's own emulator, `tc … netem`: a namespace in the middle delays, loses and shapes.

Not on the sender's own device, where TCP is told of every drop and takes it for its own full queue. Written
where no kernel with netem was at hand: tested are the commands, and their wiring with another queue (tbf).
"""

from __future__ import annotations

import math
from contextlib import ExitStack

from swarm.links.devices import End, Pair, add_device, add_veth, join
from swarm.links.namespace import LinkError, add_namespace, ip, run
from swarm.links.profiles import LinkSpec

UNLIMITED_PACKETS = 100_000
"""Without a rate nothing waits for its turn, and what is on its way must fit."""
ETHERNET_BYTES = 14


def kernel_has_netem() -> bool:
    """Whether `tc … netem` works here, tried in a namespace that goes at once."""
    with ExitStack() as undo:
        tried = add_namespace("netem", undo)
        try:
            run("tc", "-n", tried, *qdisc("lo", LinkSpec(rtt_s=0.001), 0.0))
        except LinkError:
            return False
    return True


def qdisc(device: str, spec: LinkSpec, loss: float) -> list[str]:
    """The words for `tc` that make a device one direction of a link; `loss` is a share.

    >>> " ".join(qdisc("up", LinkSpec(rtt_s=0.014, mbit_per_s=210, queue_bytes=1_000_000), 0.0007))
    'qdisc add dev up root netem delay 7000us loss 0.07% rate 210000000bit -14 limit 790'
    """
    words = f"qdisc add dev {device} root netem delay {spec.rtt_s * 5e5:.0f}us"
    if loss:
        words += f" loss {100 * loss:g}%"
    if not spec.mbit_per_s:
        return f"{words} limit {UNLIMITED_PACKETS}".split()
    # netem's limit holds for what waits and for what is on its way, in packets; the rate counts IP bytes.
    flying_bytes = spec.mbit_per_s * 1e6 / 8 * spec.rtt_s / 2
    packets = math.ceil((spec.queue_bytes + flying_bytes) / spec.mtu)
    return f"{words} rate {spec.mbit_per_s * 1e6:.0f}bit -{ETHERNET_BYTES} limit {packets}".split()


def lay_netem(pair: Pair, suffix: str, undo: ExitStack) -> None:
    """Make both ends' devices, joined by a bridge in a namespace of its own that is what the link is.

    What leaves the bridge by `up` goes to the server, by `down` to the client.
    """
    middle, spec = add_namespace(suffix, undo), pair.spec
    add_device(middle, "middle", "bridge")
    ip(middle, "link", "set", "dev", "middle", "addrgenmode", "none", "up")
    for port, end, loss in (("up", pair.server, spec.loss), ("down", pair.client, spec.loss_back)):
        add_veth(end, End(middle, port))
        # Or what counts as one packet here would be dozens: the kernel cuts big ones at a real wire only.
        ip(end.namespace, "link", "set", "dev", end.device, "gso_max_segs", "1")
        ip(middle, "link", "set", "dev", port, "mtu", str(spec.mtu), "addrgenmode", "none")
        ip(middle, "link", "set", "dev", port, "master", "middle", "up")
        run("tc", "-n", middle, *qdisc(port, spec, loss))
    join(pair)
