"""Stock Locust as an arm: what one writes after Locust's documentation and tritonclient's examples.

JPEG to the service: FastHttpUser posts a body that was made once. Triton: a User with a tritonclient of its
own, an InferInput from the array for each request, `infer`, the answer as an array, and Locust's request
event. gRPC runs under `init_gevent`, with tritonclient's own channel arguments and room for every call.
"""

from __future__ import annotations

from locust import FastHttpUser, User, constant, events, task
from locust.env import Environment

import itertools
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import gevent
import numpy as np
from tritonclient.utils import np_to_triton_dtype

from benchmarks.generating.arm import Told, arm_options, ended, measured, told
from benchmarks.generating.kinds import KINDS, PICTURES, TENSORS, Bodies, Kind, in_turn, read_bodies

SPARE_THREADS = 8


class Fast(FastHttpUser):
    """JPEG over Locust's fast client."""

    abstract = True
    wait_time = constant(0)
    bodies: ClassVar[Bodies]
    seats = itertools.count()

    def on_start(self) -> None:
        """Begin at another body than the others."""
        self.mine = in_turn(self.bodies.bodies, next(self.seats))

    @task
    def embed(self) -> None:
        """One request."""
        body: Any = next(self.mine)  # Locust declares text, and takes bytes
        self.client.post("/embed", data=body, headers=self.bodies.headers)


class Triton(User):
    """A tensor, or a file, through a tritonclient."""

    abstract = True
    wait_time = constant(0)
    library: ClassVar[Any]
    model: ClassVar[str]
    address: ClassVar[str]
    tensors: ClassVar[list[Any]]
    request_type: ClassVar[str]
    seats = itertools.count()

    def on_start(self) -> None:
        """A client for each user, as in the examples."""
        self.triton = self.library.InferenceServerClient(self.address)
        self.mine = in_turn(self.tensors, next(self.seats))

    def on_stop(self) -> None:
        """Close it."""
        self.triton.close()

    @task
    def infer(self) -> None:
        """One request."""
        library, tensor = self.library, next(self.mine)
        began, size, failure = time.perf_counter(), 0, None
        try:
            put = library.InferInput("input", list(tensor.shape), np_to_triton_dtype(tensor.dtype))
            put.set_data_from_numpy(tensor)
            wanted = [library.InferRequestedOutput("embedding")]
            answer = self.triton.infer(self.model, [put], outputs=wanted).as_numpy("embedding")
            size = answer.nbytes
        except Exception as error:
            failure = error
        self.environment.events.request.fire(
            request_type=self.request_type,
            name="infer",
            response_time=(time.perf_counter() - began) * 1e3,
            response_length=size,
            exception=failure,
            context={},
        )


def user_class(options: Any) -> type[User]:
    """The user of a kind of request, with what it sends."""
    kind = KINDS[options.kind]
    if kind.is_service:
        bodies = read_bodies(options.bodies, kind.name)
        host = f"http://127.0.0.1:{options.port}"
        return type("Bench", (Fast,), {"abstract": False, "host": host, "bodies": bodies})
    given = {
        "abstract": False,
        "library": library_of(kind.protocol, options.users),
        "address": f"127.0.0.1:{options.port}",
        "model": kind.model,
        "tensors": tensors_of(kind, options.bodies),
        "request_type": kind.protocol,
    }
    return type("Bench", (Triton,), given)


def tensors_of(kind: Kind, bodies: Path) -> list[Any]:
    """The inputs of its requests: float32 of shape [batch, 3, 224, 224], or files of [batch, 1]."""
    if kind.payload == "jpeg":
        files = sorted((bodies / PICTURES).glob("*.jpg"))
        pictures = np.array([[path.read_bytes()] for path in files], np.object_)
    else:
        pictures = np.load(bodies / TENSORS)
    return [pictures[at : at + kind.batch] for at in range(0, len(pictures), kind.batch)]


def library_of(protocol: str, users: int) -> Any:
    """tritonclient's module; gRPC's waits in gevent's thread pool, with room for every user."""
    if protocol == "http":
        from tritonclient import http

        return http
    from grpc.experimental import gevent as grpc_gevent

    gevent.get_hub().threadpool.maxsize = users + SPARE_THREADS
    grpc_gevent.init_gevent()
    from tritonclient import grpc

    return grpc


def main() -> int:
    """Warm up, listen, measure; tell."""
    options = arm_options(__doc__).parse_args()
    environment = Environment(user_classes=[user_class(options)], events=events)
    runner = environment.create_local_runner()
    took_s: list[float] = []

    def listen(response_time: float, **_: Any) -> None:
        took_s.append(response_time / 1e3)

    runner.start(options.users, spawn_rate=1000)
    gevent.sleep(options.warm_up)
    events.request.add_listener(listen)
    gevent.sleep(options.listen)
    events.request.remove_listener(listen)
    total = environment.stats.total
    before = total.num_requests
    with measured() as span:
        gevent.sleep(options.seconds)
        after = total.num_requests
    # A failure is one wherever it happens, the warm-up included.
    told(Told.of(span, after - before, took_s, total.num_failures))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
