"""Looks at every process of a study from outside, by what the kernel tells of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from swarm.sampling.machine import family, memory_of

LAUNCHER = "launcher"
ROLES = (
    ("supervisor", r"supervisor\.py"),
    ("worker", r" --worker\b"),
    ("master", r" --master\b"),
    ("servers", r" -m server up\b"),
    ("tritonserver", r"tritonserver"),
    ("stub", r"triton_python_backend_stub"),
    ("tracker", r"multiprocessing\.resource_tracker"),
    ("report", r" -m reports\b"),
)
"""What a command line says of a process; the first that matches counts."""
OTHERS = frozenset({"tritonserver", "stub", "tracker"})
"""Not written by us, or a process of theirs: they are shown, and not judged."""


@dataclass(frozen=True)
class Look:
    """One process at one moment of the wall clock; `pss_bytes` is 0 where the kernel does not tell."""

    at_s: float
    rss_bytes: int
    pss_bytes: int
    fds: int
    threads: int
    cpu_s: float


@dataclass
class Track:
    """One process over time."""

    role: str
    looks: list[Look] = field(default_factory=list)
    command: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """Its role without its number."""
        return self.role.partition(" ")[0]

    @property
    def ours(self) -> bool:
        """Whether its growth is judged."""
        return self.kind not in OTHERS


def role_of(command: Sequence[str]) -> str:
    """What a process is, by its command line; `other` where nothing is known of it.

    >>> role_of(["python", "-I", "swarm/launcher/supervisor.py", "--", "locust", "--worker"])
    'supervisor'
    """
    text = " ".join(command)
    return next((role for role, pattern in ROLES if re.search(pattern, text)), "other")


class Watcher:
    """Follows a command and all below it; processes of one role are numbered in the order they came."""

    def __init__(self, pid: int, clock: Callable[[], float] = time.time) -> None:
        self._pid, self._clock = pid, clock
        self._processes: dict[int, psutil.Process] = {}
        self.tracks: dict[int, Track] = {}

    def look(self) -> None:
        """Look at each of them once; one that has just ended is left out."""
        for pid in family(self._pid):
            with suppress(psutil.Error, OSError):
                self._take(pid)

    def _take(self, pid: int) -> None:
        process = self._processes.setdefault(pid, psutil.Process(pid))
        with process.oneshot():
            rss_bytes, threads, cpu = process.memory_info().rss, process.num_threads(), process.cpu_times()
            fds = process.num_fds()
            command = process.cmdline()
        pss_bytes = 0
        with suppress(OSError, psutil.Error):
            pss_bytes = memory_of(pid).get("resident_bytes", 0)
        track = self.tracks.setdefault(pid, Track(""))
        if not track.role or (command and track.command != command):
            # Between its fork and its exec a process looks like the one that started it.
            track.role, track.command = self._name(pid, command), command
        look = Look(self._clock(), rss_bytes, pss_bytes, fds, threads, cpu.user + cpu.system)
        track.looks.append(look)

    def _name(self, pid: int, command: Sequence[str]) -> str:
        role = LAUNCHER if pid == self._pid else role_of(command)
        same = sum(track.kind == role for track in self.tracks.values())
        return f"{role} {same + 1}" if role != LAUNCHER else role


@dataclass(frozen=True)
class Size:
    """The bytes of a file at one moment of the wall clock."""

    at_s: float
    bytes: int


def sizes_of(folder: Path, at_s: float) -> Iterator[tuple[str, Size]]:
    """Of the files that a study writes while it runs, by their names."""
    for path in folder.glob("*/*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path.name, Size(at_s, path.stat().st_size)
