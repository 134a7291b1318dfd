"""A long, narrow or lossy path between two TUN devices: a process of its own that carries IP packets.

It is started by its file's name and needs the standard library only: nothing of Locust or gevent is imported.
"""

import gc
import json
import os
import random
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

BURST = 64
"""Packets read from one end before the other end gets a turn."""
TICK_S = 0.0002
"""Packets due within this time leave together, slightly late: a fifth less work at high rates."""
PATIENCE_S = 1.0
"""How often the forwarder checks that its parent process still runs."""


class Lane:
    """One direction of a path: a drop-tail queue, a transmitter with a rate, random loss, then a delay.

    The rate is constant, so the queue is one number: when the transmitter will have sent what waits.
    With `burst_bytes` it is a policer: what a queue of that size would have held passes at once.
    `chance` gives numbers from 0 to 1, and is asked once for each packet that was transmitted.
    """

    def __init__(
        self,
        delay_ns: int,
        ns_per_byte: float = 0.0,
        queue_bytes: int = 1_000_000,
        burst_bytes: int = 0,
        loss: float = 0.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._delay_ns, self._ns_per_byte, self._loss, self._chance = delay_ns, ns_per_byte, loss, chance
        self._queue_ns = (burst_bytes or queue_bytes) * ns_per_byte if ns_per_byte else float("inf")
        self._waits = not burst_bytes
        self._free_ns = 0.0
        self._flying: deque[tuple[float, bytes]] = deque()

    def admit(self, packet: bytes, now_ns: int) -> None:
        """A packet comes to the queue: it is dropped, lost, or will be due."""
        transmit_ns = len(packet) * self._ns_per_byte
        free_ns = max(self._free_ns, now_ns) + transmit_ns
        if free_ns - now_ns > self._queue_ns:
            return
        self._free_ns = free_ns
        if not self._loss or self._chance() >= self._loss:
            self._flying.append(((free_ns if self._waits else now_ns) + self._delay_ns, packet))

    @property
    def next_ns(self) -> float:
        """When the next packet is due; infinite where none is on its way."""
        return self._flying[0][0] if self._flying else float("inf")

    def due(self, now_ns: int) -> Iterator[bytes]:
        """The packets that arrive by now, in the order in which they came."""
        flying = self._flying
        while flying and flying[0][0] <= now_ns:
            yield flying.popleft()[1]


def new_lane(seed: str = "", **shape: Any) -> Lane:
    """A lane as `LinkProfile.lanes` describes it; the same seed loses the same packets."""
    return Lane(**shape, chance=random.Random(seed).random)


def carry(client: int, server: int, up: Lane, down: Lane, over: Callable[[Sequence[int]], bool]) -> None:
    """Carry packets between two non-blocking descriptors, one packet a read, until `over`.

    `over` is called after every wait with the descriptors that can be read, standard input among them.
    """
    ways = ((client, server, up), (server, client, down))
    clock = time.monotonic_ns
    while True:
        for _, far, lane in ways:
            _hand_over(far, lane, clock())
        wait_s = (min(up.next_ns, down.next_ns) - clock()) / 1e9
        # select and not epoll, which can wait for whole milliseconds only.
        ready = select.select([client, server, 0], [], [], min(max(wait_s, TICK_S), PATIENCE_S))[0]
        if over(ready):
            return
        for near, _, lane in ways:
            if near in ready:
                packets = _read_burst(near)
                # Taken after the reads: no packet may count from before it came.
                now_ns = clock()
                for packet in packets:
                    lane.admit(packet, now_ns)


def _hand_over(far: int, lane: Lane, now_ns: int) -> None:
    write = os.write
    for packet in lane.due(now_ns):
        try:
            write(far, packet)
        except OSError:
            # The device there has no room, and drops it.
            continue


def _read_burst(near: int) -> list[bytes]:
    packets: list[bytes] = []
    read, keep = os.read, packets.append
    with suppress(BlockingIOError):
        for _ in range(BURST):
            keep(read(near, 65535))
    return packets


def main(argv: list[str]) -> int:
    """Say `ready`, then forward until standard input closes."""
    order = json.loads(argv[0])
    up, down = new_lane(**order["up"]), new_lane(**order["down"])
    parent = os.getppid()
    gc.disable()
    with suppress(OSError):
        # A path does not wait for the processors that its ends compete for.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    print("ready", flush=True)
    # Other forks keep our standard input open, so the parent's end is also checked.
    carry(order["client"], order["server"], up, down, lambda ready: 0 in ready or os.getppid() != parent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
