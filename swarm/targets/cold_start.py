"""The first requests of each batch size: sent before any warm-up, so that no measured request pays for them.

An engine that is built for each shape (TensorRT, compiled graphs) takes minutes for its first request. A
dynamic batcher makes sizes that nobody sent, so those that the load can lead to are asked for, too: all of
them where new sizes are dear, a few where those show that nothing is built for a size. Each instance of a
model may have to build for itself, and nobody can choose which one answers: so many more requests follow.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarm.plan.cell import Cell
from users.endpoint import Endpoint
from users.errors import RequestError

LONGEST_S = 900.0
"""How long a first request may take: some engines need five minutes."""
ANNOUNCE_S = 5.0
"""After this long a message says what is being waited for."""

DEAR = 3
"""A first request is expensive if it takes this many times as long as one of its size should."""
PROOF = 3
"""After this many sizes in a row without an expensive first request, no size is expected to have one."""

Model = tuple[str, str, str]
Key = tuple[str, str, str, int]


def sizes_to_call(cell: Cell, serving: Mapping[str, Any]) -> list[int]:
    """The batch sizes that a cell's load can make the server execute: its own first, then sums of it."""
    batch, most = cell.batch, serving.get("max_batch") or 0
    if not serving.get("batching") or most < batch:
        return [batch]
    return list(range(batch, min(most, batch * cell.users) + 1, batch))


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The first request of `size` pictures to a model: by which endpoint, and how long it took.

    `second_ns` is the least of those that followed by the same endpoint, None where none was timed; `opening`
    says that it was the first request to its server, `reloaded` that the study had loaded the model again.
    """

    endpoint: Endpoint
    size: int
    first_ns: int
    second_ns: int | None = None
    opening: bool = False
    reloaded: bool = False

    def to_record(self) -> dict[str, Any]:
        """Plain values, as the ledger has them."""
        times = {"first_ns": self.first_ns, "second_ns": self.second_ns}
        told = {"opening": self.opening, **({"reloaded": True} if self.reloaded else {})}
        return {"endpoint": self.endpoint.name, "batch": self.size, **times, **told}


class FirstCalls:
    """What has been asked of which model: `call` sends a request of so many pictures, and times it in ns.

    A size of a model that failed is not asked for again: it may have cost `LONGEST_S`, and whether it can be
    measured the warm-up tells. Nor are the sums of a cell's own size where that has failed.
    """

    def __init__(self, call: Callable[[Endpoint, int], int]) -> None:
        self._call = call
        self._first: dict[Key, FirstCall] = {}
        self._told: set[Key] = set()
        self._failed: set[Key] = set()
        self._per_image_ns: dict[Model, float] = {}
        self._even: set[Model] = set()
        """Models without an expensive size."""
        self._reloaded: set[tuple[str, str]] = set()
        """Servers that reloaded a model."""

    def known(self, endpoint: Endpoint, size: int, first_ns: int) -> None:
        """A first request that has been sent already; another endpoint of the same model comes second."""
        model = self._model(endpoint)
        # A server's null model comes after its own.
        opening = all(key[:2] != model[:2] for key in self._first)
        call = FirstCall(endpoint, size, first_ns, opening=opening)
        self._first.setdefault((*model, size), call)

    def forget(self, endpoint: Endpoint) -> list[FirstCall]:
        """A model of the endpoint's server was loaded again: all that may rest on it are as new.

        What was known of it and never told.
        """
        server = (endpoint.host, endpoint.shares)
        untold = [call for key, call in self._first.items() if key[:2] == server and key not in self._told]
        self._reloaded.add(server)
        self._first = {key: call for key, call in self._first.items() if key[:2] != server}
        self._told = {key for key in self._told if key[:2] != server}
        self._failed = {key for key in self._failed if key[:2] != server}
        self._even = {model for model in self._even if model[:2] != server}
        return untold

    def due(self, cell: Cell, serving: Mapping[str, Any]) -> Iterator[FirstCall]:
        """Sends what was never sent, and tells of each size once; only a cell's own has a second time.

        Raises RequestError where one fails, once for each size.
        """
        model, not_dear = self._model(cell.endpoint), 0
        instances = max(1, serving.get("instances") or 1)
        if (*model, cell.batch) in self._failed:
            return
        for size in sizes_to_call(cell, serving):
            key = (*model, size)
            if key in self._told | self._failed or (size != cell.batch and model in self._even):
                continue
            if size == cell.batch:
                yield from self._own(cell, instances)
                continue
            first = self._sent_first(cell.endpoint, size)
            yield first
            dear = first.first_ns >= DEAR * size * self._per_image_ns[model]
            not_dear = 0 if dear else not_dear + 1
            if dear:
                # The other instances pay for theirs, too.
                self._least_ns(first.endpoint, size, instances)
            if not_dear == PROOF:
                self._even.add(model)

    def _own(self, cell: Cell, instances: int) -> Iterator[FirstCall]:
        """The cell's own size, told even where only its first request succeeded."""
        first = self._sent_first(cell.endpoint, cell.batch)
        try:
            # One more than there are instances: at least one of them meets an instance that knows the size.
            second_ns = self._least_ns(first.endpoint, cell.batch, instances)
        except RequestError:
            yield first
            raise
        self._per_image_ns[self._model(cell.endpoint)] = second_ns / cell.batch
        yield replace(first, second_ns=second_ns)

    def _sent_first(self, endpoint: Endpoint, size: int) -> FirstCall:
        """The first request, sent unless it is known; from now on it counts as told."""
        key = (*self._model(endpoint), size)
        if key not in self._first:
            first_ns = self._least_ns(endpoint, size, 1)
            self._first[key] = FirstCall(endpoint, size, first_ns, reloaded=key[:2] in self._reloaded)
        self._told.add(key)
        return self._first[key]

    def _least_ns(self, endpoint: Endpoint, size: int, times: int) -> int:
        """The least of so many requests. Raises RequestError, and remembers it, where one fails."""
        try:
            return min(self._call(endpoint, size) for _ in range(times))
        except RequestError:
            self._failed.add((*self._model(endpoint), size))
            raise

    def _model(self, endpoint: Endpoint) -> Model:
        # Both protocols of a server have a port of their own on one host.
        return endpoint.host, endpoint.shares, endpoint.model or endpoint.behind
