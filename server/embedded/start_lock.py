"""One `up` starts at a time: between being chosen and being listened on, a port belongs to nobody."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server.cache import cache
from server.embedded.events import Events
from server.errors import SetUpError

LOCK = "ports.lock"


@contextmanager
def start_lock(
    events: Events,
    pause: Callable[[], None],
    timeout_s: float,
    path: Path | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Hold the lock of those who start servers; SetUpError where another holds it for `timeout_s`."""
    path = path or cache(LOCK)
    # The lock goes with the open file, however we end.
    with path.open("w") as file:
        deadline = now() + timeout_s
        waited = False
        while not _locked(file.fileno()):
            if not waited:
                events.progress("waiting for another `python -m server up` to finish starting...")
                waited = True
            if now() > deadline:
                raise SetUpError(
                    f"another `python -m server up` has been starting for more than {timeout_s:.0f} s: "
                    "stop it, or wait longer with --start-timeout-s."
                )
            pause()
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
