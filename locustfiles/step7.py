"""Step 7: one CLIP model served five ways, serial at several batches, then with several users at batch 1.

    locust -f locustfiles/step7.py                  the web UI; press Start and watch the cells run
    locust -f locustfiles/step7.py --headless       the same on the console
    STUDY=full locust -f locustfiles/step7.py …     the whole matrix
    locust -f locustfiles/step7.py --endpoints all …    and what the five have not: JPEG or pixels to Triton

With no URL given, it starts servers of its own.
"""

from typing import ClassVar

from swarm import Size, StudyShape

# Locust starts the users that are imported here.
from users import EmbeddingUser


class Step7(StudyShape):
    """Every endpoint at every batch with one user, and at batch 1 with more."""

    name = "step7"
    title = "Step 7: five ways to one model"
    sizes: ClassVar = {
        "quick": Size((1, 8), (1, 8), iterations=10, seconds=2, warm_up=12, repeats=3),
        "full": Size(
            batches=(1, 4, 8, 16, 32), levels=(1, 8, 16), iterations=30, seconds=5, warm_up=30, repeats=5
        ),
    }
