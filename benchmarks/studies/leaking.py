"""Step 7, whose workers leak: `SOAK_LEAK_KB_PER_S` says how much, for `benchmarks/soak.py`."""

from locust import events
from locust.env import Environment
from locust.runners import WorkerRunner

import os
from typing import Any

import gevent

from locustfiles.step7 import Step7
from users import EmbeddingUser

__all__ = ("EmbeddingUser", "Step7")
EVERY_S = 0.1


def leak(kb_per_s: float) -> None:
    """Keep what nobody will ask for."""
    kept = []
    while True:
        kept.append(os.urandom(round(kb_per_s * 1000 * EVERY_S)))
        gevent.sleep(EVERY_S)


def plant(environment: Environment, **_: Any) -> None:
    """In workers alone."""
    if isinstance(environment.runner, WorkerRunner):
        gevent.spawn(leak, float(os.environ.get("SOAK_LEAK_KB_PER_S", "0")))


events.init.add_listener(plant)
