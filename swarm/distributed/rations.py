"""How much a peer at the master's port may send: more than any worker does, and less than would fill memory.

Locust keeps what it is told by name, for as long as the process runs; so names are counted, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

MESSAGES_PER_S, BYTES_PER_S = 100, 4 << 20
"""A worker sends a dozen messages a second, and hundreds of kilobytes with its single Results."""
BURST_S = 10
"""What was not used for so long may come at once: a worker whose connection hung."""


class Ration:
    """Of one worker; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._at = clock, clock()
        self._messages, self._bytes = float(MESSAGES_PER_S * BURST_S), float(BYTES_PER_S * BURST_S)

    @property
    def silent_s(self) -> float:
        """How long nothing has come."""
        return self._clock() - self._at

    def take(self, size: int) -> bool:
        """Whether a message of so many bytes is within what is left."""
        now = self._clock()
        passed_s, self._at = now - self._at, now
        self._messages = min(self._messages + passed_s * MESSAGES_PER_S, MESSAGES_PER_S * BURST_S)
        self._bytes = min(self._bytes + passed_s * BYTES_PER_S, BYTES_PER_S * BURST_S)
        if self._messages < 1 or self._bytes < size:
            return False
        self._messages -= 1
        self._bytes -= size
        return True


class Names:
    """Distinct names that were told, up to `most` of them."""

    def __init__(self, most: int) -> None:
        self._most, self._known = most, set[str]()

    def take(self, names: Iterable[str]) -> bool:
        """Whether they are known, or there is room for them."""
        new = set(names) - self._known
        if len(self._known) + len(new) > self._most:
            return False
        self._known |= new
        return True
