"""Triton's Python backend scaling pixels as open_clip's transform for ViT-B/32 does."""

from typing import Any

import triton_python_backend_utils as pb_utils
from preprocess import normalised
from tensors import array_of, tensor_of


class TritonPythonModel:
    """Pixels of RGB images, UINT8 [n, 3, 224, 224], to the models' own, FP32 of the same shape."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch, one by one."""
        inputs = [array_of(request, "input") for request in requests]
        return [pb_utils.InferenceResponse([tensor_of("pixels", normalised(pixels))]) for pixels in inputs]
