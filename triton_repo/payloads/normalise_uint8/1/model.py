"""Triton's Python backend scaling pixels as open_clip's transform for ViT-B/32 does."""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tensors import array_of, tensor_of

# OpenAI CLIP's statistics of R, G and B.
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32).reshape(3, 1, 1)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32).reshape(3, 1, 1)


class TritonPythonModel:
    """Pixels of RGB images, UINT8 [n, 3, 224, 224], to the models' own, FP32 of the same shape."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch, one by one."""
        inputs = [array_of(request, "input") for request in requests]
        return [pb_utils.InferenceResponse([tensor_of("pixels", normalised(pixels))]) for pixels in inputs]


def normalised(pixels: np.ndarray) -> np.ndarray:
    """To [0, 1], and then by CLIP's statistics; in place, which is twice as fast."""
    made = pixels.astype(np.float32)
    made /= np.float32(255)
    made -= MEAN
    made /= STD
    return made
