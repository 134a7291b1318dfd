"""What a launcher that was killed has left: its processes are marked, and a later command ends them."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from swarm.owner import identity, is_gone, started

VARIABLE = "INFERSWARM_LAUNCHER"
"""The variable with the launcher's `identity` in every process that it starts, and in theirs."""
FOLDER = "inferswarm-{what}-{owner}-"
PATIENCE_S = 30.0
"""How long to wait: their supervisors closed with the launcher, but a master may be writing its report."""


def new_folder(what: str) -> Path:
    """A temporary folder that a later command removes where this process cannot."""
    return Path(tempfile.mkdtemp(prefix=FOLDER.format(what=what, owner=identity())))


def launcher_of(pid: int) -> str:
    """The launcher that a process belongs to, or nothing."""
    with suppress(psutil.Error):
        return psutil.Process(pid).environ().get(VARIABLE, "")
    return ""


def left_behind() -> list[int]:
    """The processes whose launcher is gone, this one excepted. None on systems without /proc."""
    found = [pid for pid in psutil.pids() if is_gone(launcher_of(pid))]
    return [pid for pid in found if started(pid) and pid not in (os.getpid(), os.getppid())]


def remove_folders() -> None:
    """Remove the temporary folders of processes that are gone."""
    for entry in Path(tempfile.gettempdir()).glob(FOLDER.format(what="*", owner="*") + "*"):
        if is_gone(entry.name):
            shutil.rmtree(entry, ignore_errors=True)


def end_left_behind(
    say: Callable[[str], None],
    patience_s: float = PATIENCE_S,
    find: Callable[[], list[int]] = left_behind,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait for them to end by themselves, then kill those that have not; `find` says which are there."""
    pids = find()
    if pids:
        say(f"a killed study has left {len(pids)} process{'es' * (len(pids) != 1)}: waiting for the end")
    deadline = time.monotonic() + patience_s
    while pids and time.monotonic() < deadline:
        sleep(0.1)
        pids = find()
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
