"""From a picture to the tensor CLIP takes, by Pillow and NumPy alone: client hosts have no torch.

The steps and constants are those of open_clip's transform for ViT-B-32 (resize the shorter side to 224 with
bicubic filtering, crop the centre, scale to [0, 1], normalise by CLIP's mean and deviation); a test holds the
two together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = 224
CHANNELS = 3
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32).reshape(3, 1, 1)
STD = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32).reshape(3, 1, 1)


def to_tensor(image: Image.Image) -> NDArray[np.float32]:
    """The model's input for one picture of any size and mode, as float32 of shape [3, 224, 224]."""
    return scale(to_pixels(image))


def to_pixels(image: Image.Image) -> NDArray[np.uint8]:
    """The 224×224 square of a picture of any size and mode, as uint8 of shape [3, 224, 224]."""
    square = centre_crop(resize(image)).convert("RGB")
    return np.ascontiguousarray(np.asarray(square, dtype=np.uint8).transpose(2, 0, 1))


def scale(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Pixels of shape [..., 3, 224, 224] as the model takes them: to [0, 1], then normalised."""
    unit = pixels.astype(np.float32) / np.float32(255)
    return np.asarray((unit - MEAN) / STD, dtype=np.float32)


def resize(image: Image.Image) -> Image.Image:
    """The picture with its shorter side at 224 pixels, the longer one in proportion, cut to an integer."""
    width, height = image.size
    if min(width, height) == SIZE:
        return image
    shorter = min(width, height)
    size = (SIZE, SIZE * height // width) if width == shorter else (SIZE * width // height, SIZE)
    return image.resize(size, Image.Resampling.BICUBIC)


def centre_crop(image: Image.Image) -> Image.Image:
    """The 224×224 square in the middle."""
    left = round((image.width - SIZE) / 2)
    top = round((image.height - SIZE) / 2)
    return image.crop((left, top, left + SIZE, top + SIZE))
