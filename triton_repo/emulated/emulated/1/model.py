"""Triton's Python backend sleeping as long as an inference takes elsewhere, which costs no CPU time."""

import json
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tensors import tensor_of

MAX_BATCH, DIM = 32, 512


class TritonPythonModel:
    """Any FP32 [n, 3, 224, 224] to n times the same unit vector, FP32 [n, 512], after a while."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read how long to sleep, and make the answer for the largest batch once."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._base_s, self._per_image_s, self._cold_s = (
            float(parameters[name]["string_value"]) / 1e3 for name in ("base_ms", "per_image_ms", "cold_ms")
        )
        self._seen: set[int] = set()
        self._answer = np.full((MAX_BATCH, DIM), DIM**-0.5, np.float32)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Sleep once for all images of one dynamic batch, and longer for a size this instance has not had."""
        # The shape is read without touching the pixels, which stay where Triton has put them.
        images = [pb_utils.get_input_tensor_by_name(request, "input").shape()[0] for request in requests]
        time.sleep(self._service_s(sum(images)))
        return [
            pb_utils.InferenceResponse([tensor_of("embedding", self._answer[:count])]) for count in images
        ]

    def _service_s(self, batch: int) -> float:
        cold_s = 0.0 if batch in self._seen else self._cold_s
        self._seen.add(batch)
        return self._base_s + self._per_image_s * batch + cold_s
