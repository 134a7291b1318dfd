"""Step 5A: what tensors cost as JSON, and how long Triton should wait for a batch.

    locust -f locustfiles/step5a.py --headless                  quick: three batches, three delays
    locust -f locustfiles/step5a.py --headless --study full     every batch, delay and number of users
    locust -f locustfiles/step5a.py --headless --p95-bound 250  the best delay that keeps p95 below 250 ms
    locust -f locustfiles/step5a.py --headless --cells '*/c1'   serialisation alone, without the delays
    locust -f locustfiles/step5a.py --headless --onnx-http-url gpu-host:8010 …    your own server

First the model's operators are profiled (also: inferswarm profile). Then one user sends JSON and
binary tensors, each built from its array during the measurement, as the published client did. Last, Triton's
`max_queue_delay_microseconds` × users. With no URL given, it starts a Triton of its own. Your own server
must run with --model-control-mode=explicit for the delays, and is not profiled.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from swarm import Cell, Size, StudyShape
from swarm.plan.matrix import concurrent

# Locust starts the users that are imported here.
from users import EmbeddingUser, Endpoint
from users.load.assignment import LIBRARY

JSON, BINARY = "json", "fp32"
LEAST_REQUESTS = 3


@dataclass(frozen=True)
class BatchingSize(Size):
    """`delays_us` are the queue delays to try. `json_images` is the most images that a JSON cell
    measures: at batch 32 each of its requests takes the client and Triton seconds.
    """

    delays_us: tuple[int, ...] = ()
    json_images: int = 0


def _serial(endpoints: Iterable[Endpoint], size: Size) -> Iterator[Cell]:
    for endpoint in endpoints:
        for batch in size.batches:
            requests = _requests(endpoint, batch, size)
            yield Cell(endpoint, batch, 1, requests, size.seconds, client=LIBRARY)


def _requests(endpoint: Endpoint, batch: int, size: Size) -> int:
    """The iterations, or fewer if the limit of JSON images requires it."""
    most = size.json_images if isinstance(size, BatchingSize) else 0
    if endpoint.payload != JSON or not most:
        return size.iterations
    return min(size.iterations, max(LEAST_REQUESTS, most // batch))


def _delayed(endpoints: Iterable[Endpoint], size: Size) -> Iterator[Cell]:
    delays_us = size.delays_us if isinstance(size, BatchingSize) else ()
    fit = [endpoint for endpoint in endpoints if endpoint.payload == BINARY]
    for delay_us, endpoint, level in itertools.product(delays_us, fit, size.levels):
        cell = concurrent(endpoint, level, size).varied(queue_delay_us=delay_us)
        if cell.adjustable:
            yield cell


class Step5a(StudyShape):
    """JSON and binary at every batch; then every queue delay under every number of users."""

    name = "step5a"
    title = "Step 5A: serialisation and batching"
    endpoints = ("onnx-http", "onnx-json-http")
    operators = True
    sizes: ClassVar = {
        "quick": BatchingSize(
            *((1, 8, 32), (1, 8)),
            iterations=7,
            seconds=2,
            warm_up=12,
            repeats=3,
            delays_us=(0, 5_000, 20_000),
            json_images=32,
        ),
        "full": BatchingSize(
            *((1, 4, 8, 16, 32), (1, 2, 8, 16, 32)),
            iterations=30,
            seconds=5,
            warm_up=30,
            repeats=3,
            delays_us=(0, 1_000, 5_000, 10_000, 20_000),
        ),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Every batch with one user who builds each request again; then each delay under each level of users.

        Only float32 tensors are sent under the delays, and only where a model of Triton's takes them.
        """
        return [*_serial(endpoints, size), *_delayed(endpoints, size)]
