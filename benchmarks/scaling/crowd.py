"""Simulated workers: each has its own ZeroMQ socket and speaks Locust's words and ours, and no more.

python -m benchmarks.scaling.crowd PORT WORKERS PROGRESS_S
"""

from __future__ import annotations

from locust import __version__

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgpack  # type: ignore[import-untyped]
import zmq

from benchmarks.scaling import told
from swarm.distributed.part import OF_PACER
from swarm.distributed.protocol import ASK, DRAINED, HELLO, REPLY

TICKS = 100
"""In a second."""
SHIP_TICKS, STATS_TICKS, KINDS = 10, 300, 16
"""Ticks from one look at what is to be shipped, or at Locust's statistics, to the next; seconds told."""
HEARTBEAT = {"state": "ready", "current_cpu_usage": 60.0, "current_memory_usage": 200_000_000}
PER_HOST, IDLE_S = 16, 20.0
"""Workers on each simulated host; and how long nothing may come before a crowd goes home."""


def due(tick: int, workers: int, progress_ticks: int) -> Iterator[tuple[str, range]]:
    """What is sent at a tick of the wall clock, and by whom, as real workers do.

    While they send load, each tells its progress once in so many ticks, 0 is no load; records go out in the
    first tenth of each second, when every worker closes its window.

    >>> list(due(203, 1_000, 0))
    [('heartbeat', range(3, 1000, 100)), ('stats', range(203, 1000, 300))]
    """
    yield "heartbeat", range(tick % TICKS, workers, TICKS)
    yield "stats", range(tick % STATS_TICKS, workers, STATS_TICKS)
    if progress_ticks:
        yield "progress", range(tick % progress_ticks, workers, progress_ticks)
        if tick % TICKS < SHIP_TICKS:
            yield "records", range(tick % SHIP_TICKS, workers, SHIP_TICKS)
            yield "path", range(tick % SHIP_TICKS, workers, SHIP_TICKS)


class Crowd:
    """So many workers in one process."""

    def __init__(self, port: int, workers: int, progress_s: float) -> None:
        self._progress_ticks = round(progress_s * TICKS)
        context = self._context = zmq.Context()
        context.set(zmq.MAX_SOCKETS, workers + 10)
        self.names = [f"host{index // PER_HOST}_{index:032x}" for index in range(workers)]
        self.sockets = [self._connected(context, port, name) for name in self.names]
        self._index = {socket: index for index, socket in enumerate(self.sockets)}
        self._poller = zmq.Poller()
        for socket in self.sockets:
            self._poller.register(socket, zmq.POLLIN)
        self._tag: told.Tag | None = None
        self._cell = ("", 0)
        self._state, self._ok, self._acknowledged = "ready", 0, 0
        self._users: dict[int, int] = {}
        self._heads: list[bytes] = []
        self.over = False
        self.sent, self.bytes = Counter[str](), Counter[str]()
        self.late_s = 0.0
        """By how much a tick came late at most: then it is not the master that is slow."""

    def _connected(self, context: zmq.Context[Any], port: int, name: str) -> Any:
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.IDENTITY, name.encode())
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"tcp://127.0.0.1:{port}")
        return socket

    def close(self) -> None:
        """Hang up."""
        self._context.destroy()

    def live(self) -> None:
        """Until the master dismisses all workers, or goes silent."""
        for index in range(len(self.sockets)):
            self._send(index, told.head("client_ready", __version__), "ready")
        heard, tick = time.monotonic(), int(time.time() * TICKS)
        while not self.over and time.monotonic() < heard + IDLE_S:
            now = time.time()
            if self._listen(max(0, round(((tick + 1) / TICKS - now) * 1000))):
                heard = time.monotonic()
            if time.time() * TICKS >= tick + 1:
                tick += 1
                self.late_s = max(self.late_s, time.time() - (tick + 1) / TICKS)
                self._tick(tick)

    def _tick(self, tick: int) -> None:
        for kind, who in due(tick, len(self.sockets), self._progress_ticks if self._tag else 0):
            if who:
                self._tell(kind, who, tick // TICKS - 1)

    def _tell(self, kind: str, who: range, second: int) -> None:
        heads = self._heads_of(kind, second)
        for index in who:
            # What a worker reports of its users must be its own: the master waits for their sum.
            head = heads[index % len(heads)] if heads else told.stats(self._users.get(index, 0))
            self._send(index, head, kind)

    def _heads_of(self, kind: str, second: int) -> list[bytes]:
        """What some workers tell in turns; nothing where each has its own to tell."""
        if kind == "heartbeat":
            return [told.head("heartbeat", {**HEARTBEAT, "state": self._state})]
        if kind == "stats":
            return []
        assert self._tag is not None
        if kind == "progress":
            self._ok += 1
            return [told.progress(self._tag, self._ok)]
        heads = self._heads if kind == "records" else [told.told(told.path(self._tag))]
        return [told.stamped(head, second, time.perf_counter_ns()) for head in heads]

    def _send(self, index: int, head: bytes, kind: str) -> None:
        message = told.whole(head, self.names[index])
        self.sockets[index].send(message, zmq.NOBLOCK)
        self.sent[kind] += 1
        self.bytes[kind] += len(message)

    def _listen(self, timeout_ms: int) -> bool:
        found = self._poller.poll(timeout_ms)
        for socket, _ in found:
            kind, data, _ = msgpack.unpackb(socket.recv(zmq.NOBLOCK), strict_map_key=False)
            self._hear(self._index[socket], kind, data)
        return bool(found)

    def _hear(self, index: int, kind: str, data: Any) -> None:
        if kind == "ack":
            self._send(index, told.head(HELLO, {"host": f"host{index // PER_HOST}"}), "hello")
        elif kind == "spawn":
            count = self._users[index] = sum(data["user_classes_count"].values())
            self._state = "running"
            self._send(index, told.head("spawning", None), "spawn")
            self._send(index, told.head("spawning_complete", told.users(count)), "spawn")
        elif kind == ASK:
            self._send(index, told.head(REPLY, {"seq": data["seq"], **self._answer(data)}), "reply")
        elif kind == "quit":
            self.over = True

    def _answer(self, data: dict[str, Any]) -> dict[str, Any]:
        """As a worker answers; what it does at a phase or a drain, all do at the first that is asked."""
        if data["op"] == "drain":
            self._tag = None
            own = {"users": 1, "finished": self._ok, "phase_ns": 10**9}
            return {"parts": [{**dict.fromkeys(DRAINED, 0), **dict.fromkeys(OF_PACER), **own}]}
        if data["seq"] > self._acknowledged:
            self._acknowledged = data["seq"]
            if data["op"] == "cell":
                (cell,) = data["cells"]
                self._cell = (cell["cell"], cell["repeat"])
            elif data["op"] == "phase":
                self._tag, self._ok = (*self._cell, data["orders"][0]["phase"]), 0
                self._heads = [told.told(told.records(self._tag, seed)) for seed in range(KINDS)]
        return {}


def main(argv: list[str]) -> int:
    """Be there for one master, then say what was sent."""
    crowd = Crowd(int(argv[0]), int(argv[1]), float(argv[2]))
    crowd.live()
    crowd.close()
    said = {"sent": crowd.sent, "bytes": crowd.bytes, "late_s": crowd.late_s, "cpu_s": time.process_time()}
    print(json.dumps(said), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
