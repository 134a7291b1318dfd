"""The memory of a process that builds large requests, again and again: kept, not given back each time."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of glibc's mallopt(3)."""
KEPT_BYTES = 1 << 29


def keep_memory(library: ctypes.CDLL | None = None) -> bool:
    """Have the C library keep freed memory for the next request; whether it could be told.

    glibc hands what is freed at the end of its heap back to the kernel, and maps large blocks anew. A request
    of 32 pictures then costs some ten thousand page faults, tens of milliseconds on virtual machines: several
    times what writing its tensor takes, and a client that runs for a while in other memory does not pay them.
    """
    mallopt = getattr(library or ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
