# mypy: ignore-errors
"""CLIP's image tower on ONNX Runtime."""

import triton_python_backend_utils as pb_utils
from clip_onnx import Clip
from tensors import array_of, tensor_of


class TritonPythonModel:
    """`pixels` FP32 [n, 3, 224, 224] to `features` FP32 [n, 512]."""

    def initialize(self, args):
        """Open the session."""
        self._clip = Clip()

    def execute(self, requests):
        """Each request by itself."""
        vectors = [self._clip(array_of(request, "pixels")) for request in requests]
        return [pb_utils.InferenceResponse([tensor_of("features", rows)]) for rows in vectors]
