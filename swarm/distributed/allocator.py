"""The memory of a process that copies large requests, again and again: kept, and in huge pages."""

from __future__ import annotations

import ctypes
import functools
import mmap

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of glibc's mallopt(3)."""
KEPT_BYTES = 1 << 29
COPIES_BYTES, HUGE_PAGE_BYTES = 160 << 20, 2 << 20
"""Room for a pool of tensors and a hundred copies; nothing of it is taken before it is used."""


def keep_memory(library: ctypes.CDLL | None = None) -> bool:
    """Have the C library keep freed memory for the next request; whether it could be told.

    glibc hands what is freed at the end of its heap back to the kernel, and maps large blocks anew. A request
    of 32 pictures then costs some ten thousand page faults, tens of milliseconds on virtual machines: several
    times what writing its tensor takes, and a client that runs for a while in other memory does not pay them.
    """
    mallopt = getattr(library or ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))


@functools.cache
def prepare_memory() -> bool:
    """Keep memory, and ask for huge pages where requests will be copied to; whether both could be had."""
    return keep_memory() and ask_for_huge_pages(COPIES_BYTES)


def ask_for_huge_pages(size: int, library: ctypes.CDLL | None = None) -> bool:
    """Ask for huge pages for the next `size` bytes that the C library gives out; whether it could be done.

    gRPC copies each request before it sends it. On pages of 4 KB that takes a tenth more of its processor
    time. Only where memory is kept: the block that is asked for and freed here stays at the heap's end.
    """
    heap = library or ctypes.CDLL(None)
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None or not hasattr(heap, "madvise"):
        return False
    heap.malloc.restype, heap.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    heap.free.argtypes = [ctypes.c_void_p]
    heap.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = heap.malloc(size)
    if not block:
        return False
    first = -(-block // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    refused = heap.madvise(first, block + size - first - HUGE_PAGE_BYTES, advice)
    heap.free(block)
    return not refused
