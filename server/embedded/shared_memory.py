"""The names of tritonserver's shared memory, and removing what servers that were killed left of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from server.errors import SetUpError

FOLDER = Path("/dev/shm")
PROC = Path("/proc")
MB = 1 << 20
INSTANCE_MB = 24
"""A batch of 32 images as float32, their embeddings, and what the backend takes at first: seen 23 MB."""


def needed_mb(tritonservers: int, instances: int, steps: int) -> int:
    """For so many servers, each with instances of its model, the steps before it, and the null model."""
    return tritonservers * (INSTANCE_MB * (instances + steps) + 1)


def check(needed_mb: int) -> None:
    """SetUpError where there is less of it than tritonservers will take.

    Without it a tritonserver would die of its first large batch, in the middle of a study.
    """
    free_mb = 0
    with suppress(OSError):
        found = os.statvfs(FOLDER)
        free_mb = found.f_bavail * found.f_frsize // MB if os.access(FOLDER, os.W_OK) else 0
    size = f"{1 + needed_mb // 1024}g"
    if free_mb < needed_mb:
        raise SetUpError(
            f"{FOLDER} has {free_mb} MB free for us, and tritonserver needs {needed_mb} there: "
            f"run `mount -o remount,size={size} {FOLDER}`, or start the container with --shm-size={size}."
        )


def prefix_for(engine: str) -> str:
    """What the names of one server's shared memory begin with; it tells whose server it is."""
    return f"inferswarm_{os.getpid()}_{engine}_"


def close_to_others(prefix: str) -> None:
    """Let its owner alone read it: the Python backend makes it readable for all, whatever the umask."""
    for made in FOLDER.glob(f"{prefix}*"):
        # A link may be another's, and lead to a file of ours.
        with suppress(OSError), open(made, "rb", opener=_of_no_link) as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                os.fchmod(file.fileno(), 0o600)


def _of_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def remove(prefix: str) -> None:
    """Remove what a server that has ended left behind."""
    for leftover in FOLDER.glob(f"{prefix}*"):
        _remove(leftover)


def remove_orphans() -> None:
    """Remove what the servers of supervisors that are gone left behind."""
    for leftover in FOLDER.glob("inferswarm_*_*"):
        pid = leftover.name.split("_")[1]
        if pid.isdigit() and not (PROC / pid).exists():
            _remove(leftover)


def _remove(leftover: Path) -> None:
    # Another user may have made one of such a name.
    with suppress(OSError):
        leftover.unlink()
