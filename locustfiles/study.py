"""Any model on any server: every endpoint at every batch, with every number of users, or at every rate.

    locust -f locustfiles/study.py --headless --endpoint siglip=triton+grpc://gpu-host:8001/siglip
    locust -f locustfiles/study.py --headless --endpoint mine=my-service.toml --batches 1,8 --levels 1,16
    locust -f locustfiles/study.py --headless --endpoint old=… --endpoint new=… --rates 50 --gate gates.toml

`inferswarm probe TARGET` shows beforehand how an endpoint would be called, and examples/endpoints has a
file for each known kind of server. With no endpoint given, it starts servers of its own.
"""

from collections.abc import Sequence
from typing import ClassVar

from swarm import Cell, Size, StudyShape
from swarm.plan.matrix import every_batch_and_level

# Locust starts the users that are imported here.
from users import EmbeddingUser, Endpoint


class Study(StudyShape):
    """Endpoints by batches by users, or by batches by rates."""

    name = "study"
    title = "Endpoints side by side"
    all_batches = True
    sizes: ClassVar = {
        "quick": Size(batches=(1,), levels=(1, 8), iterations=10, seconds=3, repeats=3),
        "full": Size(batches=(1, 8, 32), levels=(1, 8, 32), iterations=50, seconds=10, warm_up=30, repeats=5),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """The whole of it."""
        return every_batch_and_level(endpoints, size)
