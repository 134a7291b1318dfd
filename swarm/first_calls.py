"""The first requests of each batch size: sent before any warm-up, so that no measured request pays for them.

An engine that is built for each shape (TensorRT, compiled graphs) takes minutes for its first request. A
dynamic batcher makes sizes that nobody sent, so those that the load can lead to are asked for, too: all of
them where new sizes are dear, a few where those show that nothing is built for a size.
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

DEAR = 3
"""A first request is dear that takes so many times as long as one of its size should."""
PROOF = 3
"""So many sizes in a row that are not dear show that no size is."""

Model = tuple[str, str, str]
Key = tuple[str, str, str, int]


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
        self._per_image_ns: dict[Model, float] = {}
        self._even: set[Model] = set()
        """Models to which no size is dear."""

    def known(self, endpoint: Endpoint, size: int, first_ns: int) -> None:
        """A first request that has been sent already; another endpoint of the same model comes second."""
        self._first_ns.setdefault((*self._model(endpoint), size), first_ns)

    def due(self, cell: Cell, serving: Mapping[str, Any]) -> Iterator[tuple[int, int, int | None]]:
        """Sends what was never sent: size, nanoseconds of its first and, of the cell's own, second request.

        Raises RequestError where one fails.
        """
        model, not_dear = self._model(cell.endpoint), 0
        for size in sizes_to_call(cell, serving):
            if (*model, size) in self._told or (size != cell.batch and model in self._even):
                continue
            first_ns, second_ns = self._called(cell, size)
            yield size, first_ns, second_ns
            if second_ns is None:
                cheap = first_ns < DEAR * size * self._per_image_ns.get(model, 0)
                not_dear = not_dear + 1 if cheap else 0
            if not_dear == PROOF:
                self._even.add(model)

    def _called(self, cell: Cell, size: int) -> tuple[int, int | None]:
        """The first and, of the cell's own size, the second request."""
        model = self._model(cell.endpoint)
        key, second_ns = (*model, size), None
        if key not in self._first_ns:
            self._first_ns[key] = self._call(cell.endpoint, size)
        if size == cell.batch:
            second_ns = self._call(cell.endpoint, size)
            self._per_image_ns[model] = second_ns / size
        self._told.add(key)
        return self._first_ns[key], second_ns

    def _model(self, endpoint: Endpoint) -> Model:
        # Both protocols of a server have a port of their own on one host.
        return endpoint.host, endpoint.server, endpoint.model or endpoint.backend
