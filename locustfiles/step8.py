"""Step 8: the PyTorch service on Kubernetes under a load that rises, holds and falls; does scaling help?

    kubectl proxy &
    locust -f locustfiles/step8.py --headless --study full --rates 20
        --pytorch-url http://127.0.0.1:8092 --kube-url http://127.0.0.1:8001

docs/kubernetes.md has all steps, on kind with the manifests of server/k8s. --rates gives the
peaks, --load-profile another profile. Without --kube-url no replicas are recorded; with no URL at all it
starts a single PyTorch service of its own, which nothing scales.
"""

from collections.abc import Sequence
from typing import ClassVar

from swarm import Cell, Size, StudyShape
from swarm.plan.matrix import at_rates

# Locust starts the users that are imported here.
from users import EmbeddingUser, Endpoint
from users.transport.connections import PER_REQUEST


class Step8(StudyShape):
    """Open-loop load whose rate rises to a peak, holds, and falls back, at batch 1."""

    name = "step8"
    title = "Step 8: scaling on Kubernetes"
    endpoints = ("pytorch-http",)
    sizes: ClassVar = {
        "quick": Size(
            (1,), (), iterations=1, seconds=1, warm_up=12, profile="ramp:20,hold:40,cool:20", peaks=(4,)
        ),
        "full": Size(
            (1,), (), iterations=1, seconds=1, warm_up=20, profile="ramp:60,hold:300,cool:240", peaks=(20,)
        ),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Each peak for each endpoint, on a connection for each request: a Service balances connections, and
        one that is kept alive would stay with its first pod, however many are added.
        """
        return at_rates(endpoints, size, size.peaks, channels=PER_REQUEST)
