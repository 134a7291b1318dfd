# mypy: ignore-errors
"""CLIP's image tower by ONNX Runtime, prepared for by Pillow and NumPy: what all these servers have alike.

`CLIP_ONNX` is the path of the exported file. Nothing here, or beside it, is of inferswarm: these are programs
as users of each server write them, with what its requirements file has installed.
"""

import io
import os

import numpy as np
import onnxruntime
from PIL import Image

SIZE = 224
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)


def opened(jpeg: bytes) -> Image.Image:
    """A picture of a JPEG file."""
    return Image.open(io.BytesIO(jpeg), formats=["JPEG"])


def prepared(image: Image.Image) -> np.ndarray:
    """Shorter side to 224, the square in the middle, normalised: float32 [3, 224, 224]."""
    scale = SIZE / min(image.size)
    width, height = (int(side * scale) for side in image.size)
    left, top = round((width - SIZE) / 2), round((height - SIZE) / 2)
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    square = resized.crop((left, top, left + SIZE, top + SIZE)).convert("RGB")
    pixels = (np.asarray(square, np.float32) / 255 - MEAN) / DEVIATION
    return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32)


class Clip:
    """The model, on one thread: as many requests at a time as its server sends it."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = os.environ["CLIP_ONNX"]
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """float32 [n, 3, 224, 224] to [n, 512]."""
        return self._session.run(["embedding"], {"input": np.asarray(pixels, np.float32)})[0]
