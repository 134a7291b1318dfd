"""The right vectors of pictures, computed here: CLIP's by ONNX Runtime, and what siglip_fp16 makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from server.models.preprocess import preprocess

CLIP, SIGLIP = "clip", "siglip"
SIDE, BLOCK = 384, 24
BLOCKS = SIDE // BLOCK

Vector = NDArray[np.float32]


def golden(kind: str, onnx: Path, pictures: Sequence[Path]) -> NDArray[np.float32]:
    """float32 [n, dimension], by CLIP or SIGLIP, of JPEG files in order."""
    embed = clip(onnx) if kind == CLIP else block_means
    return np.stack([embed(Image.open(path)) for path in pictures])


def clip(onnx: Path) -> Callable[[Image.Image], Vector]:
    """A picture to its 512 numbers, by the exported model at `onnx`."""
    session = onnxruntime.InferenceSession(str(onnx), providers=["CPUExecutionProvider"])

    def embed(picture: Image.Image) -> Vector:
        pixels = preprocess(picture)[np.newaxis]
        return np.asarray(session.run(["embedding"], {"input": pixels})[0][0], np.float32)

    return embed


def block_means(picture: Image.Image) -> Vector:
    """A picture to the 768 numbers that triton/siglip_fp16 makes of it, prepared as SigLIP is."""
    square = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = (np.asarray(square, np.float32) / 255 - 0.5) / 0.5
    means = pixels.reshape(BLOCKS, BLOCK, BLOCKS, BLOCK, 3).mean(axis=(1, 3))
    return np.asarray(means.ravel(), np.float32)


def least_cosine(rows: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Of vectors with the right ones, row by row; NaN where a vector has no length."""
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(right, axis=1)
    with np.errstate(invalid="ignore"):
        return float(np.min(np.einsum("ij,ij->i", rows, right) / lengths))
