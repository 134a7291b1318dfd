"""Swarm: many processes, one study.

What a locustfile needs is imported when it is asked for: Locust patches sockets and threads, which the
programs that start hosts and links have no use for.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from reports.entry import leave_at_interrupt

if TYPE_CHECKING:
    from swarm.plan.cell import Cell
    from swarm.plan.matrix import Size, serial_and_concurrent
    from swarm.study.shape import StudyShape

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in users, and before it where it comes first

INCONCLUSIVE = 3
__all__ = ["Cell", "Size", "StudyShape", "serial_and_concurrent"]
_HOMES = {"Cell": "swarm.plan.cell", "StudyShape": "swarm.study.shape"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    main = getattr(sys.modules["__main__"], "main", None)
    if getattr(main, "__module__", "") == "locust.main":
        # Until the study listens to signals itself: Locust is about to load all the rest.
        leave_at_interrupt(INCONCLUSIVE)
    return getattr(importlib.import_module(_HOMES.get(name, "swarm.plan.matrix")), name)
