"""Writing a model's image tower as ONNX and proving that ONNX Runtime gives what PyTorch gives."""

import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from server.errors import SetUpError
from server.models.clip import ImageTower, load_tower, weights_sha256
from server.spec import IMAGE_SIZE, ModelSpec

TOLERANCE = 1e-4
CHECKED_BATCHES = (1, 3)
OPSET = 17


def write_onnx(spec: ModelSpec, path: Path) -> tuple[str, float]:
    """Write `input` float32 [n, 3, 224, 224] to `embedding` float32 [n, 512]; SetUpError if it differs.

    Returns the hash of its weights, and its largest error against PyTorch.
    """
    tower = load_tower(spec)
    # Not in inference mode, where PyTorch's attention takes a fused path that ONNX has no operator for.
    with warnings.catch_warnings():
        # The TorchScript exporter calls itself legacy; it takes a quarter of the time of the new one here,
        # and ONNX Runtime is no slower on its graph.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            tower,
            (torch.zeros(2, 3, IMAGE_SIZE, IMAGE_SIZE),),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=["input"],
            output_names=["embedding"],
            dynamic_axes={"input": {0: "batch"}, "embedding": {0: "batch"}},
        )
    difference = max_difference(tower, path)
    if not difference <= TOLERANCE:
        raise SetUpError(
            f"the exported {spec.name} differs from PyTorch by {difference:.1e}, more than {TOLERANCE:.0e}: "
            "run `inferswarm export --force` again, and check the versions of torch and onnxruntime."
        )
    return weights_sha256(tower), difference


def max_difference(tower: ImageTower, path: Path) -> float:
    """The largest absolute difference of any output number on a few batches of random pixels."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    worst = 0.0
    for batch in CHECKED_BATCHES:
        pixels = random.standard_normal((batch, 3, IMAGE_SIZE, IMAGE_SIZE), dtype=np.float32)
        (found,) = session.run(["embedding"], {"input": pixels})
        with torch.inference_mode():
            expected = tower(torch.from_numpy(pixels)).numpy()
        worst = max(worst, float(np.abs(found - expected).max()))
    return worst
