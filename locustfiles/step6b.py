"""Step 6B: how far does a server go? 1 to 128 users at batch 1, then 1, 2 and 4 instances of its model.

    locust -f locustfiles/step6b.py                 the web UI; press Start and watch the cells run
    locust -f locustfiles/step6b.py --headless      the same on the console
    STUDY=full locust -f locustfiles/step6b.py …    every number of users on every number of instances
    locust -f locustfiles/step6b.py --onnx-http-url gpu-host:8010 --usd-per-hour 0.30 …    your own server

With no URL given, it starts a real Triton whose model only sleeps as long as an RTX 4080 would compute, each
instance by itself, as each of several GPUs would; --emulate none computes. Your own server must run with
--model-control-mode=explicit: its number of instances is set for each run, over its GPUs if it has
any, and restored at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from swarm import Cell, Size, StudyShape
from swarm.plan.matrix import concurrent

# Locust starts the users that are imported here.
from users import EmbeddingUser, Endpoint

LEVELS = (1, 4, 8, 16, 32, 64, 128)
INSTANCES = (1, 2, 4)


@dataclass(frozen=True)
class GrowthSize(Size):
    """`shared_levels` are the levels that are run on each number of instances, not only on one."""

    shared_levels: tuple[int, ...] = ()


class Step6b(StudyShape):
    """More and more users on one instance, and the same on two and four."""

    name = "step6b"
    title = "Step 6B: how far a server goes"
    emulate = "rtx4080"
    endpoints = ("onnx-http",)
    sizes: ClassVar = {
        "quick": GrowthSize((1,), LEVELS, 30, 2, warm_up=12, repeats=3, shared_levels=(32,)),
        "full": GrowthSize((1,), LEVELS, 500, 10, warm_up=30, repeats=5, shared_levels=LEVELS),
    }

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """Each endpoint at batch 1 with every level of users on one instance; the shared ones on more, too.

        An endpoint with no model of Triton's behind it has each level once, as it was started.
        """
        first, *more = INSTANCES
        shared = size.shared_levels if isinstance(size, GrowthSize) else size.levels
        cells = []
        for endpoint in endpoints:
            own = [concurrent(endpoint, level, size) for level in size.levels]
            if not own[0].adjustable:
                cells += own
                continue
            cells += [cell.varied(instances=first) for cell in own]
            cells += [
                cell.varied(instances=number) for number in more for cell in own if cell.level in shared
            ]
        return cells
