"""The first requests of each batch size: sent before any warm-up, so that no measured request pays for them.

An engine that is built for each shape (TensorRT, compiled graphs) takes minutes for its first request. A
dynamic batcher makes sizes that nobody sent, so those that the load can lead to are asked for, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from swarm.plan import Cell
from users.endpoint import Endpoint

LONGEST_S = 900.0
"""How long a first request may take: engines have been seen to need five minutes."""
ANNOUNCE_S = 5.0
"""After this long a person is told what is being waited for."""

Key = tuple[str, str, int]


def sizes_to_call(cell: Cell, serving: Mapping[str, Any]) -> list[int]:
    """The batch sizes that a cell's load can make the server execute: its own first, then sums of it."""
    batch, most = cell.batch, serving.get("max_batch") or 0
    if not serving.get("batching") or most < batch:
        return [batch]
    return list(range(batch, min(most, batch * cell.users) + 1, batch))


class FirstCalls:
    """What has been asked of which model: `call` sends a request of so many pictures, and times it in ns."""

    def __init__(self, call: Callable[[Endpoint, int], int]) -> None:
        self._call = call
        self._first_ns: dict[Key, int] = {}
        self._told: set[Key] = set()

    def known(self, endpoint: Endpoint, size: int, first_ns: int) -> None:
        """A first request that has been sent already; another endpoint of the same model comes second."""
        self._first_ns.setdefault(self._key(endpoint, size), first_ns)

    def due(self, cell: Cell, serving: Mapping[str, Any]) -> Iterator[tuple[int, int, int | None]]:
        """Sends what was never sent: size, nanoseconds of its first and, of the cell's own, second request.

        Raises RequestError where one fails.
        """
        for size in sizes_to_call(cell, serving):
            key = self._key(cell.endpoint, size)
            if key not in self._told:
                if key not in self._first_ns:
                    self._first_ns[key] = self._call(cell.endpoint, size)
                self._told.add(key)
                second_ns = self._call(cell.endpoint, size) if size == cell.batch else None
                yield size, self._first_ns[key], second_ns

    def _key(self, endpoint: Endpoint, size: int) -> Key:
        return endpoint.server, endpoint.model or endpoint.backend, size
