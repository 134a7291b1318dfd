"""Triton's Python backend running open_clip's image tower in PyTorch, as it is or under torch.compile."""

import json
import locale
import sys
from contextlib import suppress
from typing import Any

import torch
import triton_python_backend_utils as pb_utils
from tensors import tensor_of


class TritonPythonModel:
    """Pixels, FP32 [n, 3, 224, 224], to embeddings, FP32 [n, 512]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model by the service's own code, infer or compile, and log what became of it."""
        # Of Python in Triton it is C, and torch.compile reads files of its own, which are no ASCII, by it.
        with suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
        given = json.loads(args["model_config"])["parameters"]
        parameters = {name: value["string_value"] for name, value in given.items()}
        self._embedder = embedder(parameters)
        self._embedder.load()
        of = self._embedder
        pb_utils.Logger.log_info(f"computes on {of.device} in {of.precision}, weights {of.weights_sha256}")
        for call in self._embedder.first_calls:
            times = f"{call.first_ns / 1e6:.3f} ms, then {call.next_ns / 1e6:.3f} ms"
            pb_utils.Logger.log_info(f"compiled for {call.images} images: {times}")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch with one inference."""
        inputs = [
            torch.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input")) for request in requests
        ]
        parts = self._embedder.compute(inputs).split([len(one) for one in inputs])
        return [pb_utils.InferenceResponse([tensor_of("embedding", part.numpy())]) for part in parts]


def embedder(parameters: dict[str, str]) -> Any:
    """The service's model, of the checkout `sources`, set up by parameters in place of the environment."""
    sys.path.insert(0, parameters["sources"])
    from server.models.clip import ClipEmbedder
    from server.settings import Settings

    names = ("model", "pretrained", "seed", "device", "precision", "threads")
    settings = Settings.from_env({f"INFERSWARM_{name.upper()}": parameters[name] for name in names})
    return ClipEmbedder(settings, compiled="compiled" in parameters)
