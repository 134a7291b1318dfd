"""A server's counters, once they stand still: Triton counts a request after answering it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SETTLE_S = 0.05
TRIES = 20


def settled(read: Callable[[], dict[str, Any]], sleep: Callable[[float], None]) -> dict[str, Any]:
    """The last of two equal readings, or of as many as there is patience for; an unreadable one at once."""
    last, now = None, read()
    for _ in range(TRIES):
        if now == last or "error" in now:
            break
        sleep(SETTLE_S)
        last, now = now, read()
    return now
