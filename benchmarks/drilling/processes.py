"""Processes of a drill: marked by their environment, so that whatever they start is found and counted."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MARK = "INFERSWARM_DRILL"
POLL_S = 0.05
GONE_S = 30.0
"""How long processes may take to be gone once they have ended or were killed."""


class Failure(Exception):
    """A drill that could not be carried out; the text says why."""


def marked(mark: str) -> dict[int, str]:
    """Every live process with this mark in its environment: its command line by its id."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                found[int(entry.name)] = " ".join(word.decode(errors="replace") for word in words).strip()
    return found


def named(mark: str, *words: str) -> list[int]:
    """The ids of those whose command line has all these words, or paths that end in them."""
    lines = {pid: {Path(part).name for part in line.split()} for pid, line in marked(mark).items()}
    return sorted(pid for pid, has in lines.items() if has.issuperset(words))


def end_all(mark: str) -> None:
    """Kill them, by id."""
    for pid in marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Poll until it holds; False where it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on."""
    with socket.socket() as held:
        held.bind((host, 0))
        port: int = held.getsockname()[1]
    return port
