"""One batch, more and more users: what `benchmarks/growth.py` runs against null servers."""

from typing import ClassVar

from swarm import Size, StudyShape
from users import EmbeddingUser

LEVELS = (1, 10, 100, 1_000)


class Growth(StudyShape):
    """Each endpoint at batch 1 with 1 user to 1,000; `full` has one level, for studies that vary workers."""

    name = "growth"
    title = "How cost grows"
    sizes: ClassVar = {
        "quick": Size(batches=(1,), levels=LEVELS, iterations=1, seconds=5),
        "full": Size(batches=(1,), levels=(64,), iterations=1, seconds=5),
    }
