"""A control group with less CPU than a core for the processes of a set-up, of version 1 or 2."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from swarm.taken_cpu import text_of

MOUNT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
PERIOD_US = 100_000
"""The kernel's own default: within each such period a group may use its quota, and then it stands still."""
ENDED_S, LOOK_S = 5.0, 0.02
ENTER = 'echo $$ > "$1" && shift && exec "$@"'
"""For `sh -c`: go into the group whose list of processes is the first word, and become the rest."""


@dataclass(frozen=True)
class Parent:
    """The group that others are made in, and whether it is one of version 2."""

    folder: Path
    version_2: bool


def limited(cores: float, *variables: str) -> Callable[[], AbstractContextManager[Sequence[str]]]:
    """Where a command runs with so many cores, and `NAME=VALUE`s: a set-up's `server_in` or `client_in`."""
    return partial(group_of, cores, variables)


@contextmanager
def group_of(cores: float, variables: Sequence[str] = ()) -> Iterator[Sequence[str]]:
    """Yield the words before a command that run it in a new group; at the end nothing is left of either."""
    parent = parent_of(MOUNT, OWN.read_text())
    folder = parent.folder / f"inferswarm-planted-{os.getpid()}-{time.monotonic_ns()}"
    try:
        if parent.version_2:
            (parent.folder / "cgroup.subtree_control").write_text("+cpu")
        folder.mkdir()
    except OSError as error:
        raise SystemExit(f"no control group can be made in {parent.folder}: {error.strerror}") from None
    try:
        for name, value in files_of(cores, parent.version_2).items():
            (folder / name).write_text(value)
        yield ("sh", "-c", ENTER, "sh", str(folder / "cgroup.procs"), "env", *variables)
    finally:
        empty(folder)
        folder.rmdir()


def parent_of(mount: Path, own: str) -> Parent:
    """Where this process may make a group; `own` is its `/proc/self/cgroup`. SystemExit where it may not.

    >>> parent_of(Path("/nowhere"), "3:cpuset:/a\\n2:cpu,cpuacct:/b\\n0::/c").folder.as_posix()
    '/nowhere/cpu,cpuacct/b'
    """
    if "cpu" in text_of(mount / "cgroup.controllers").split():
        # Only the root of version 2 may have both processes and groups with a quota.
        return Parent(mount, True)
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        if "cpu" in names.split(","):
            return Parent(mount / names / path.lstrip("/"), False)
    raise SystemExit(f"no control group here limits CPU: {mount} has neither version 2's nor version 1's cpu")


def files_of(cores: float, version_2: bool) -> dict[str, str]:
    """What is written into a group's files.

    >>> files_of(0.25, True)
    {'cpu.max': '25000 100000'}
    """
    quota_us = round(cores * PERIOD_US)
    if version_2:
        return {"cpu.max": f"{quota_us} {PERIOD_US}"}
    return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}


def empty(folder: Path) -> None:
    """Kill what is left in a group of ours, and wait until it is gone."""
    deadline = time.monotonic() + ENDED_S
    while (left := text_of(folder / "cgroup.procs").split()) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(LOOK_S)
