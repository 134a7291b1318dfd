"""Triton's Python backend sleeping as long as an inference takes elsewhere, which costs no CPU time."""

import json
import time
from typing import Any

from tensors import images_of, unit_vectors


class TritonPythonModel:
    """Any FP32 [n, 3, 224, 224] to n times the same unit vector, FP32 [n, 512], after a while."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read how long to sleep."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._base_s, self._per_image_s, self._cold_s = (
            float(parameters[name]["string_value"]) / 1e3 for name in ("base_ms", "per_image_ms", "cold_ms")
        )
        sizes = json.loads(parameters.get("sizes_ms", {}).get("string_value", "{}"))
        self._sizes_s = {int(size): float(took_ms) / 1e3 for size, took_ms in sizes.items()}
        self._seen: set[int] = set()

    def execute(self, requests: list[Any]) -> list[Any]:
        """Sleep once for all images of one dynamic batch, and longer for a size this instance has not had."""
        images = [images_of(request) for request in requests]
        time.sleep(self._service_s(sum(images)))
        return [unit_vectors(count) for count in images]

    def _service_s(self, batch: int) -> float:
        cold_s = 0.0 if batch in self._seen else self._cold_s
        self._seen.add(batch)
        return self._sizes_s.get(batch, self._base_s + self._per_image_s * batch) + cold_s
