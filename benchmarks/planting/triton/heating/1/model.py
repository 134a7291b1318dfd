# mypy: ignore-errors
"""Triton's Python backend sleeping as long as a decoder takes whose clock falls to a quarter under load."""

import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tensors import images_of, read_strings, tensor_of

read_strings()

COOL_S, HOT_S = 0.02, 0.08
HOT_AFTER_S = 20


class TritonPythonModel:
    """Files, BYTES [n, 1], that are not read, to black pixels, FP32 [n, 3, 224, 224], one after another."""

    began_s = 0.0

    def execute(self, requests: list[Any]) -> list[Any]:
        """Sleep for all images of one dynamic batch; longer from 20 s after the first one on."""
        self.began_s = self.began_s or time.monotonic()
        hot = time.monotonic() - self.began_s > HOT_AFTER_S
        images = [images_of(request) for request in requests]
        time.sleep((HOT_S if hot else COOL_S) * sum(images))
        return [
            pb_utils.InferenceResponse([tensor_of("pixels", np.zeros((count, 3, 224, 224), np.float32))])
            for count in images
        ]
