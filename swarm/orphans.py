"""What a launcher that was killed has left: its processes are marked, and a later command ends them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from swarm.links.namespace import started

VARIABLE = b"INFERSWARM_LAUNCHER"
PROC = Path("/proc")
PATIENCE_S = 30.0
"""Their leashes have closed with the launcher: a master may be writing its report."""


def mark() -> dict[str, str]:
    """What every process that this one starts, and theirs, has in its environment."""
    return {VARIABLE.decode(): identity(os.getpid())}


def identity(pid: int) -> str:
    """A process by its id and when it started, which no later process of that id shares."""
    return f"{pid}-{started(pid)}"


def launcher_of(pid: int, proc: Path = PROC) -> str:
    """The launcher that a process belongs to, or nothing."""
    with suppress(OSError):
        for word in (proc / str(pid) / "environ").read_bytes().split(b"\0"):
            name, _, value = word.partition(b"=")
            if name == VARIABLE:
                return value.decode()
    return ""


def left_behind(proc: Path = PROC) -> list[int]:
    """The processes whose launcher is gone. None on systems without /proc."""
    pids = [int(entry.name) for entry in proc.glob("[0-9]*")]
    owners = {pid: launcher_of(pid, proc) for pid in pids}
    marks = {owner for owner in owners.values() if owner}
    gone = {owner for owner in marks if identity(int(owner.partition("-")[0])) != owner}
    return [pid for pid, owner in owners.items() if owner in gone and started(pid)]


def end_left_behind(
    say: Callable[[str], None],
    patience_s: float = PATIENCE_S,
    find: Callable[[], list[int]] = left_behind,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait for them to end by themselves, then kill those that have not; `find` says which are there."""
    pids = find()
    if pids:
        say(f"a run that was killed has left {len(pids)} processes: waiting for them to end")
    deadline = time.monotonic() + patience_s
    while pids and time.monotonic() < deadline:
        sleep(0.1)
        pids = find()
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
