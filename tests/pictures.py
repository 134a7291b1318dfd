"""Small pictures as JPEG files, no two alike, and sets of them."""

import io

import numpy as np
from PIL import Image

from users.inputs.images import ImageSet


def jpegs(count: int, side: int = 16) -> tuple[bytes, ...]:
    """So many files of noise, the same each time."""
    return tuple(map(jpeg, np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)))


def jpeg(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """A file of the pixels, uint8 of shape [height, width, 3]."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def image_set(count: int) -> ImageSet:
    """A set of so many."""
    return ImageSet(jpegs(count), "test")
