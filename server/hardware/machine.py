"""Which machine this is, so that a load generator can tell whether it shares it with the server."""

import hashlib
from contextlib import suppress
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Drawn by the kernel when it starts: containers of one machine have the same, two machines never."""
ID_LENGTH = 16


def machine_id(boot_id: Path = BOOT_ID) -> str:
    """A hash, since nobody else need know the number itself; empty where the kernel tells none.

    The same function stands in swarm/this_machine.py, which cannot import this one.
    """
    with suppress(OSError):
        return hashlib.sha256(boot_id.read_bytes().strip()).hexdigest()[:ID_LENGTH]
    return ""
