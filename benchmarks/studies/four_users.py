"""Four users at batch 1, for `benchmarks/tail.py`."""

from typing import ClassVar

from swarm import Size, StudyShape
from users import EmbeddingUser


class FourUsers(StudyShape):
    """One cell for as long as it is let."""

    name = "four-users"
    title = "Four users, until stopped"
    sizes: ClassVar = {
        "quick": Size(batches=(), levels=(4,), iterations=1, seconds=600, warm_up=2),
        "full": Size(batches=(), levels=(4,), iterations=1, seconds=600, warm_up=2),
    }
