"""Step 6A: three backends side by side: PyTorch, ONNX and the compiled engine, one request after the other.

    locust -f locustfiles/step6a.py --headless                  quick: four batches, three short repeats
    locust -f locustfiles/step6a.py --headless --study full     all five batches, longer
    locust -f locustfiles/step6a.py --headless --pytorch-url … --onnx-http-url … --trt-http-url …

With no URL given, it starts servers of its own, reads the memory of each, and without a GPU OpenVINO stands
in for TensorRT. The report shows the published figures beside them.
"""

from typing import ClassVar

from swarm import Size, StudyShape

# Locust starts the users that are imported here.
from users import EmbeddingUser


class Step6a(StudyShape):
    """Each backend over HTTP with one user, from one image in a request to 32."""

    name = "step6a"
    title = "Step 6A: three backends side by side"
    endpoints = ("pytorch-http", "onnx-http", "trt-http")
    sizes: ClassVar = {
        "quick": Size(batches=(1, 4, 8, 32), levels=(1,), iterations=7, seconds=2, warm_up=12, repeats=3),
        "full": Size(batches=(1, 4, 8, 16, 32), levels=(1,), iterations=30, seconds=5, warm_up=30, repeats=3),
    }
