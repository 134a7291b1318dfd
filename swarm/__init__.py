"""Swarm: many processes, one study.

What a locustfile needs is imported when it is asked for: Locust patches sockets and threads, which the
programs that start hosts and links have no use for.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.plan.cell import Cell
    from swarm.plan.matrix import Size, serial_and_concurrent
    from swarm.study.shape import StudyShape

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in users, and before it where it comes first

__all__ = ["Cell", "Size", "StudyShape", "serial_and_concurrent"]
_HOMES = {"Cell": "swarm.plan.cell", "StudyShape": "swarm.study.shape"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "swarm.plan.matrix")), name)
