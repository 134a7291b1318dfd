"""Few cells with a fault of the client's own, for `benchmarks/planted.py`; all of it set by the environment.

`PLANTED_USERS` (levels with commas between) and `PLANTED_BATCH` make the cells; `PLANTED_FAULT` is nothing
or one of FAULTS.
"""

from locust import events

import os
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import gevent
from gevent import monkey

from swarm import Cell, Size, StudyShape
from users import EmbeddingUser, Endpoint

BURST_S, PAUSE_S = 0.02, 0.0005
BLOCK_S, BETWEEN_S = 0.1, 0.1
SHORT_BLOCK_S = 0.01


class Planted(StudyShape):
    """The cells of a set-up."""

    name = "planted"
    title = "One planted cause"
    sizes: ClassVar = {"quick": Size((), (), iterations=20, seconds=6, warm_up=6)}

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """The endpoint with the batch and each level of users that were asked for."""
        batch, levels = int(os.environ["PLANTED_BATCH"]), os.environ["PLANTED_USERS"].split(",")
        return [
            Cell(endpoint, batch, int(users), size.iterations, size.seconds)
            for endpoint in endpoints
            for users in levels
        ]


def burn() -> None:
    """Keep one core busy, a little at a time."""
    while True:
        until = time.perf_counter() + BURST_S
        while time.perf_counter() < until:
            pass
        gevent.sleep(PAUSE_S)


def block(held_s: float = BLOCK_S, free_s: float = BETWEEN_S) -> None:
    """Hold the event loop, as a call that gevent knows nothing of does."""
    sleep = monkey.get_original("time", "sleep")
    while True:
        sleep(held_s)
        gevent.sleep(free_s)


def block_shortly() -> None:
    """The same, ten times as often and as short."""
    block(SHORT_BLOCK_S, SHORT_BLOCK_S)


def hold_lock() -> None:
    """Compute in a real thread: Python lets one thread run at a time, and it gives way every 5 ms only."""
    monkey.get_original("_thread", "start_new_thread")(compute, ())


def compute() -> None:
    """Use the core for good."""
    while True:
        pass


FAULTS = {"cpu": burn, "loop": block, "block10": block_shortly, "thread": hold_lock}


def plant(**_: Any) -> None:
    """Begin the fault with the test."""
    fault = FAULTS.get(os.environ.get("PLANTED_FAULT", ""))
    if fault is not None:
        gevent.spawn(fault)


events.test_start.add_listener(plant)
