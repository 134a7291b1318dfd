# mypy: ignore-errors
"""Triton's Python backend sleeping as long as a slow decoder takes for each image."""

import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tensors import images_of, read_strings, tensor_of

read_strings()

IMAGE_S = 0.02


class TritonPythonModel:
    """Files, BYTES [n, 1], that are not read, to black pixels, FP32 [n, 3, 224, 224], one after another."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Sleep for all images of one dynamic batch."""
        images = [images_of(request) for request in requests]
        time.sleep(IMAGE_S * sum(images))
        return [
            pb_utils.InferenceResponse([tensor_of("pixels", np.zeros((count, 3, 224, 224), np.float32))])
            for count in images
        ]
