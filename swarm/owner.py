"""Which process has made what may outlive it, as its name says, and whether that process is gone."""

import os
import re
from pathlib import Path

MARK = re.compile(r"(\d+)-(\d+)-(\d+)")


def identity() -> str:
    """This process: its id, when it started, as ids come again, and whose ids: containers have their own."""
    return f"{os.getpid()}-{started(os.getpid())}-{_id_space()}"


def is_gone(text: str) -> bool:
    """Whether the process whose `identity` is in a text is no more; False where nobody here can know."""
    found = MARK.search(text)
    if found is None:
        return False
    pid, began, space = map(int, found.groups())
    return space == _id_space() and started(pid) != began


def started(pid: int) -> int:
    """When a process started, in the kernel's ticks since the machine did; 0 where it is no more."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state in "ZX" else int(fields[18])


def _id_space() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0
