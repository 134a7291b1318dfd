"""Step 5A: what tensors cost as JSON, and how long Triton should wait for a batch.

    locust -f locustfiles/step5a.py --headless                  quick: three batches, three delays
    locust -f locustfiles/step5a.py --headless --study full     every batch, delay and number of users
    locust -f locustfiles/step5a.py --headless --p95-bound 250  the best delay that keeps p95 below 250 ms
    locust -f locustfiles/step5a.py --headless --cells '*/c1'   serialisation alone, without the delays
    locust -f locustfiles/step5a.py --headless --onnx-http-url gpu-host:8010 …    a server of yours

First the operators of the model are profiled (also: python -m server profile). Then one user sends JSON and
binary tensors, each made from its array while it is measured, as the published client did. Last, Triton's
`max_queue_delay_microseconds` × users. With no URL given, it starts a Triton of its own. A server of yours
must run with --model-control-mode=explicit for the delays, and is not profiled.
"""

from collections.abc import Sequence
from typing import ClassVar

from locustfiles.batching import BatchingSize, serialisation_and_batching
from swarm import Cell, Size, StudyShape
from users import Endpoint, TritonHttpUser, TritonJsonHttpUser


class TritonBinaryHttpUser(TritonHttpUser):
    """float32 tensors over binary HTTP to Triton."""


class TritonJsonTensorsHttpUser(TritonJsonHttpUser):
    """The same tensors as numbers in JSON."""


class Step5a(StudyShape):
    """JSON and binary at every batch; then every queue delay under every number of users."""

    name = "step5a"
    title = "Step 5A: serialisation and batching"
    endpoints = ("onnx-http", "onnx-json-http")
    operators = True
    sizes: ClassVar = {
        "quick": BatchingSize(
            *((1, 8, 32), (1, 2, 8)),
            iterations=10,
            seconds=2,
            warm_up=5,
            delays_us=(0, 5_000, 20_000),
            json_images=80,
        ),
        "full": BatchingSize(
            *((1, 4, 8, 16, 32), (1, 2, 8, 16, 32)),
            iterations=30,
            seconds=5,
            warm_up=15,
            repeats=3,
            delays_us=(0, 1_000, 5_000, 10_000, 20_000),
        ),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Serialisation with one user, then the delays."""
        return serialisation_and_batching(endpoints, size)
