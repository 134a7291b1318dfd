"""The cells of a study of serialisation and batching: JSON against binary, then how long Triton waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from swarm.plan.cell import Cell
from swarm.plan.matrix import Size
from swarm.plan.sweep import delay_name
from users.endpoint import Endpoint
from users.load.assignment import LIBRARY

JSON, BINARY = "json", "fp32"
LEAST_REQUESTS = 3


@dataclass(frozen=True)
class BatchingSize(Size):
    """`delays_us` are the queue delays to try. `json_images` is how many images a cell of JSON measures at
    most: at batch 32 each of its requests takes the client and Triton seconds.
    """

    delays_us: tuple[int, ...] = ()
    json_images: int = 0


def serialisation_and_batching(endpoints: Iterable[Endpoint], size: Size) -> list[Cell]:
    """With one user who makes each request anew, every batch; then every delay under every level of users.

    Only float32 tensors are sent under the delays, and only where a model of Triton's takes them.
    """
    asked = list(endpoints)
    delays_us = size.delays_us if isinstance(size, BatchingSize) else ()
    return [*_serial(asked, size), *_delayed(asked, size, delays_us)]


def _serial(endpoints: Iterable[Endpoint], size: Size) -> Iterator[Cell]:
    for endpoint in endpoints:
        for batch in size.batches:
            requests = _requests(endpoint, batch, size)
            yield Cell(endpoint, batch, 1, requests, size.seconds, client=LIBRARY)


def _requests(endpoint: Endpoint, batch: int, size: Size) -> int:
    """The iterations, or as few as the images of JSON allow."""
    most = size.json_images if isinstance(size, BatchingSize) else 0
    if endpoint.payload != JSON or not most:
        return size.iterations
    return min(size.iterations, max(LEAST_REQUESTS, most // batch))


def _delayed(endpoints: Iterable[Endpoint], size: Size, delays_us: Iterable[int]) -> Iterator[Cell]:
    fit = [endpoint for endpoint in endpoints if endpoint.payload == BINARY]
    for delay_us in delays_us:
        for endpoint in fit:
            for level in size.levels:
                requests = max(2 * size.iterations, 5 * level)
                cell = Cell(
                    *(endpoint, 1, level, requests, size.seconds),
                    queue_delay_us=delay_us,
                    variant=delay_name(delay_us),
                )
                if cell.adjustable:
                    yield cell
