# mypy: ignore-errors
"""CLIP's image tower behind a decoder, on ONNX Runtime."""

import numpy as np
import triton_python_backend_utils as pb_utils
from clip_onnx import Clip, opened, prepared
from tensors import array_of, tensor_of


class TritonPythonModel:
    """`encoded` UINT8 [n, longest] to `features` FP32 [n, 512]."""

    def initialize(self, args):
        """Open the session."""
        self._clip = Clip()

    def execute(self, requests):
        """Each request by itself."""
        return [self._respond(array_of(request, "encoded")) for request in requests]

    def _respond(self, files):
        pixels = np.stack([prepared(opened(file.tobytes())) for file in files])
        return pb_utils.InferenceResponse([tensor_of("features", self._clip(pixels))])
