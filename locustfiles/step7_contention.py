"""What slows gRPC: HTTP against gRPC at 16 users, by the number of connections and processes, and by client.

    inferswarm run -f locustfiles/step7_contention.py --link wan-a100    over an emulated path
    inferswarm run -f locustfiles/step7_contention.py --link lan         without a path's limits
    inferswarm run -f locustfiles/step7_contention.py --onnx-http-url … --onnx-grpc-url …    real ones

With no URL given, it starts a real Triton whose model only sleeps as long as an A100 would compute.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from swarm import Cell, Size, StudyShape
from swarm.errors import UsageError
from swarm.plan.sweep import Topology

# Locust starts the users that are imported here.
from users import EmbeddingUser, Endpoint
from users.load.assignment import LIBRARY, PREPARED
from users.transport.connections import PER_USER, SAME_ARGS, SHARED

PROCESSES = 4

ARMS: Sequence[tuple[str, dict[str, Any]]] = (
    # What is compared: one connection per user over HTTP, as in HTTP/1.1 clients, and one for all, as in
    # gRPC's.
    ("http", {"channels": PER_USER}),
    ("grpc", {"channels": SHARED}),
    # Is it the number of connections? Then HTTP on one is as slow, and gRPC with one a user as fast.
    ("http", {"channels": SHARED}),
    ("grpc", {"channels": PER_USER}),
    # Is it the client's process? Then four processes with a connection each beat one process with four.
    ("grpc", {"channels": f"pool:{PROCESSES}"}),
    ("grpc", {"channels": SHARED, "topology": Topology(PROCESSES)}),
    # Is it loss on the path? Then a congestion control that does not slow down for it is faster.
    ("grpc", {"channels": SHARED, "congestion": "bbr"}),
    # All of these are sent by our own wire. Is it the library? Then grpcio is slower on the same connections.
    ("grpc", {"channels": SHARED, "client": LIBRARY}),
    ("grpc", {"channels": PER_USER, "client": LIBRARY}),
    # One channel per user is not one connection per user if their arguments are equal: grpcio joins those.
    ("grpc", {"channels": SAME_ARGS, "client": LIBRARY}),
)
"""After Google's and gRPC's own advice on channels (grpc.io, "Performance best practices"), and its issues on
channels of equal arguments that share one connection. Of each its protocol, and what is not usual in it."""


def bilingual(endpoints: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """The endpoints whose model is also tested over the other protocol; no floors."""
    for endpoint in endpoints:
        ways = {other.protocol for other in endpoints if asked(other) == asked(endpoint)}
        if len(ways) > 1 and not endpoint.floor_of:
            yield endpoint


def asked(endpoint: Endpoint) -> tuple[str, ...]:
    """The model and payload, for either protocol."""
    return endpoint.shares, endpoint.model, endpoint.payload


class Step7Contention(StudyShape):
    """The same 16 users on 1, 4 and 16 connections, in 1 and 4 processes, by our own wire and by grpcio."""

    name = "step7_contention"
    title = "Step 7, contention: what slows gRPC"
    emulate = "a100"
    workers = 4
    sizes: ClassVar = {
        "quick": Size(batches=(1,), levels=(16,), iterations=30, seconds=15, warm_up=12, repeats=3),
        "full": Size(batches=(1,), levels=(16,), iterations=30, seconds=60, warm_up=30, repeats=5),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Every arm for every server that speaks both protocols, at each level of users and batch 1.

        Raises UsageError where no server speaks both.
        """
        both = list(bilingual(endpoints))
        if not both:
            raise UsageError(
                "this study compares HTTP with gRPC on one server: give it both, e.g. --onnx-http-url and"
                " --onnx-grpc-url, two --endpoint of one model, or no URL at all"
            )
        usual: dict[str, Any] = {"topology": Topology(1), "client": PREPARED}
        return [
            Cell(endpoint, 1, level, size.iterations, size.seconds, **usual).varied(**axes)
            for level in size.levels
            for protocol, axes in ARMS
            for endpoint in both
            if endpoint.protocol == protocol
        ]
