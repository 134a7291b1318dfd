"""open_clip's own image transform for ViT-B/32, in PIL and numpy so that it needs no torch.

It imports nothing of this project: Triton's models have a copy beside them (server/triton/repository.py).
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = 224
# OpenAI CLIP's statistics of R, G and B.
MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
CHANNELS_FIRST = (3, 1, 1)


def resized(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height in pixels once the shorter side is 224; the longer is cut to a whole pixel."""
    width, height = size
    if width <= height:
        return SIZE, int(SIZE * height / width)
    return int(SIZE * width / height), SIZE


def preprocess(image: Image.Image) -> NDArray[np.float32]:
    """An image as the model takes it: float32 [3, 224, 224], normalised.

    The image is resized and cropped in its own mode and becomes RGB only then, as in open_clip.
    """
    width, height = resized(image.size)
    left, top = round((width - SIZE) / 2), round((height - SIZE) / 2)
    square = image.resize((width, height), Image.Resampling.BICUBIC).crop(
        (left, top, left + SIZE, top + SIZE)
    )
    return normalised(np.asarray(square.convert("RGB")).transpose(2, 0, 1))


def normalised(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Pixels, uint8 [..., 3, 224, 224], to [0, 1], and then by CLIP's statistics."""
    made = pixels.astype(np.float32, order="C")
    # In place and a channel at a time, which is several times faster than pixel by pixel.
    made /= np.float32(255)
    made -= np.array(MEAN, np.float32).reshape(CHANNELS_FIRST)
    made /= np.array(STD, np.float32).reshape(CHANNELS_FIRST)
    return made
