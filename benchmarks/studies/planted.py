"""One cell with a fault of the client's own, for `benchmarks/planted.py`; all of it set by the environment.

`PLANTED_USERS` and `PLANTED_BATCH` make the cell; `PLANTED_FAULT` is nothing, `cpu` or `loop`.
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


class Planted(StudyShape):
    """The one cell of a set-up."""

    name = "planted"
    title = "One planted cause"
    sizes: ClassVar = {"quick": Size((), (), iterations=20, seconds=6, warm_up=6)}

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """The endpoint with the users and the batch that were asked for."""
        batch, users = int(os.environ["PLANTED_BATCH"]), int(os.environ["PLANTED_USERS"])
        return [Cell(endpoint, batch, users, size.iterations, size.seconds) for endpoint in endpoints]


def burn() -> None:
    """Keep one core busy, a little at a time."""
    while True:
        until = time.perf_counter() + BURST_S
        while time.perf_counter() < until:
            pass
        gevent.sleep(PAUSE_S)


def block() -> None:
    """Hold the event loop, as a call that gevent knows nothing of does."""
    sleep = monkey.get_original("time", "sleep")
    while True:
        sleep(BLOCK_S)
        gevent.sleep(BETWEEN_S)


FAULTS = {"cpu": burn, "loop": block}


def plant(**_: Any) -> None:
    """Begin the fault with the test."""
    fault = FAULTS.get(os.environ.get("PLANTED_FAULT", ""))
    if fault is not None:
        gevent.spawn(fault)


events.test_start.add_listener(plant)
