"""The names of tritonserver's shared memory, and removing what servers that were killed left of it."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path("/dev/shm")
PROC = Path("/proc")


def prefix_for(engine: str) -> str:
    """What the names of one server's shared memory begin with; it tells whose server it is."""
    return f"inferswarm_{os.getpid()}_{engine}_"


def remove(prefix: str) -> None:
    """Remove what a server that has ended left behind."""
    for leftover in FOLDER.glob(f"{prefix}*"):
        leftover.unlink(missing_ok=True)


def remove_orphans() -> None:
    """Remove what the servers of supervisors that are gone left behind."""
    for leftover in FOLDER.glob("inferswarm_*_*"):
        pid = leftover.name.split("_")[1]
        if pid.isdigit() and not (PROC / pid).exists():
            leftover.unlink(missing_ok=True)
