"""What slows gRPC: HTTP against gRPC at 16 users, over every number of connections, processes and clients.

    python -m swarm run -f locustfiles/step7_contention.py --link wan-a100    over an emulated path
    python -m swarm run -f locustfiles/step7_contention.py --link lan         without a path's limits
    python -m swarm run -f locustfiles/step7_contention.py --onnx-http-url … --onnx-grpc-url …    real ones

With no URL given, it starts a real Triton whose model only sleeps as long as an A100 would compute.
"""

from collections.abc import Sequence
from typing import ClassVar

from locustfiles.arms import contention
from swarm import Cell, Size, StudyShape
from users import Endpoint, TritonGrpcUser, TritonHttpUser


class TritonBinaryHttpUser(TritonHttpUser):
    """float32 tensors over binary HTTP to Triton."""


class TritonBinaryGrpcUser(TritonGrpcUser):
    """float32 tensors over gRPC to Triton."""


class Step7Contention(StudyShape):
    """The same 16 users on 1, 4 and 16 connections, in 1 and 4 processes, repeated and interleaved."""

    name = "step7_contention"
    title = "Step 7, contention: what slows gRPC"
    emulate = "a100"
    workers = 4
    sizes: ClassVar = {
        "quick": Size(batches=(1,), levels=(16,), iterations=30, seconds=15, warm_up=6, repeats=3),
        "full": Size(batches=(1,), levels=(16,), iterations=30, seconds=60, warm_up=10, repeats=5),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Each arm of the comparison, for every server that speaks both protocols."""
        return contention(endpoints, size)
