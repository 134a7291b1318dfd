"""Triton's Python backend running the exported image tower on ONNX Runtime."""

import json
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Pixels, FP32 [n, 3, 224, 224], to embeddings, FP32 [n, 512]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the session and infer once, so that the first request pays for nothing."""
        parameters = json.loads(args["model_config"])["parameters"]
        options = onnxruntime.SessionOptions()
        # Idle threads that spin would take the cores from whoever is measured beside this server.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            parameters["onnx_path"]["string_value"], options, providers=["CPUExecutionProvider"]
        )
        self._embed(np.zeros((1, 3, 224, 224), np.float32))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch with one inference."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "input").as_numpy() for request in requests]
        pixels = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
        ends = np.cumsum([len(one) for one in inputs])[:-1]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("embedding", part)])
            for part in np.split(self._embed(pixels), ends)
        ]

    def _embed(self, pixels: np.ndarray) -> np.ndarray:
        return self._session.run(["embedding"], {"input": pixels})[0]
