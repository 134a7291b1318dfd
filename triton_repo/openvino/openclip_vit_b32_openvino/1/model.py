"""Triton's Python backend running the exported image tower as OpenVINO compiled it, a model a batch size."""

import json
from typing import Any

import numpy as np
import openvino
from tensors import embedded_together

# Nothing is compiled while requests are served: a batch of another size is made up of these, 5 = 4 + 1.
BATCHES = (32, 16, 8, 4, 2, 1)


def split_batch(images: int) -> list[int]:
    """The compiled batch sizes that make up a number of images, the largest first."""
    sizes = []
    while images:
        sizes.append(next(batch for batch in BATCHES if batch <= images))
        images -= sizes[-1]
    return sizes


class TritonPythonModel:
    """Pixels, FP32 [n, 3, 224, 224], to embeddings, FP32 [n, 512]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Compile every batch size, or load it from the cache, and infer once."""
        parameters = json.loads(args["model_config"])["parameters"]
        core = openvino.Core()
        # Compiled models are cached without their weights: 5 MB instead of 1.7 GB, and no slower to load.
        core.set_property(
            {"CACHE_DIR": parameters["cache_dir"]["string_value"], "CACHE_MODE": "OPTIMIZE_SIZE"}
        )
        model = core.read_model(parameters["onnx_path"]["string_value"])
        self._compiled = {batch: self._compile(core, model.clone(), batch) for batch in BATCHES}
        self._embed(np.zeros((1, 3, 224, 224), np.float32))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch with as few inferences as its size allows."""
        return embedded_together(requests, self._embed)

    def _compile(self, core: Any, model: Any, batch: int) -> Any:
        model.reshape([batch, 3, 224, 224])
        # In f32 like the other backends: by itself OpenVINO computes in bf16 where the CPU can, which halves
        # the time and changes the numbers, so that a comparison would be one of precisions.
        options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        return core.compile_model(model, "CPU", options)

    def _embed(self, pixels: np.ndarray) -> np.ndarray:
        pieces = np.split(pixels, np.cumsum(split_batch(len(pixels)))[:-1])
        return np.concatenate([self._compiled[len(piece)](piece)[0] for piece in pieces])
