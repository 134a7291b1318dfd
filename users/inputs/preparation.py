"""How a picture becomes what a model takes: resized, cropped, scaled, normalised; by name, or from a file.

It is done by Pillow and NumPy alone: client hosts have no torch. Tests compare each preset with its library.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PIXELS: Mapping[str, type[np.generic]] = {"FP32": np.float32, "FP16": np.float16, "UINT8": np.uint8}
"""The types that a picture is sent as, by KServe's names."""
LARGEST_SIDE = 16_384
SMALLEST, LARGEST = 1e-6, 1e6
"""The range in which float32 represents pixels exactly enough."""
MOST_BYTES = 65_536
"""The largest file with a preparation: a hundred times what one needs."""
FILTERS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


@dataclass(frozen=True, slots=True)
class Preparation:
    """The steps between a picture and a tensor of its pixels.

    `resize`: `shorter` keeps the proportions and lets the picture just cover the size of the input, `squash`
    brings both sides to it. With `resize_to` that is done at a larger size, whose shorter side it is, and
    what is too much is cropped at the centre; 0: at the size itself. Pixels are divided by `divide`, lessened
    by `mean` and divided by `deviation`, by channel in the `order` of the channels; where an input takes
    integers, of that only the order is kept.

    `crop_size` is the size for which `resize_to` is meant; for an input of another one it grows in
    proportion. Recipes state both for one size, mostly 256 of 224, and other sizes keep to it: torchvision's
    own (342 of 299 for Inception), and timm's by their `crop_pct` of 0.875. A picture of 256 would not even
    cover an input of 384. 0: `resize_to` is taken as it is.

        Preparation("mine", resize="squash", mean=(0.5, 0.5, 0.5), deviation=(0.5, 0.5, 0.5))
    """

    name: str
    resize: Literal["shorter", "squash"] = "shorter"
    resize_to: int = 0
    crop_size: int = 0
    filter: Literal["bicubic", "bilinear"] = "bicubic"
    divide: float = 255.0
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    deviation: tuple[float, float, float] = (1.0, 1.0, 1.0)
    order: Literal["RGB", "BGR"] = "RGB"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preparation:
        """From plain values, whose tuples may be lists."""
        tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **tuples})


CLIP = Preparation(
    "clip", mean=(0.48145466, 0.4578275, 0.40821073), deviation=(0.26862954, 0.26130258, 0.27577711)
)
IMAGENET = Preparation(
    "imagenet",
    resize_to=256,
    crop_size=224,
    filter="bilinear",
    mean=(0.485, 0.456, 0.406),
    deviation=(0.229, 0.224, 0.225),
)
BLUE_FIRST = (103.939, 116.779, 123.68)
"""The mean of ImageNet's pixels from 0 to 255, as in Caffe and Keras."""

PRESETS: Mapping[str, Preparation] = {
    "clip": CLIP,
    "clip-336": CLIP,
    "siglip": Preparation("siglip", "squash", mean=(0.5, 0.5, 0.5), deviation=(0.5, 0.5, 0.5)),
    "dinov2": replace(IMAGENET, name="dinov2", filter="bicubic"),
    "imagenet": IMAGENET,
    "caffe": replace(
        IMAGENET, name="caffe", divide=1.0, mean=BLUE_FIRST, deviation=(1.0, 1.0, 1.0), order="BGR"
    ),
    "pixels": Preparation("pixels", divide=1.0),
}
"""By what `--prepare` calls them. The size is the input's, and so `clip-336` is but `clip`. `imagenet` is
torchvision's first recipe; its weights V2 of ResNet-50 resize to 232, which a file can say. `pixels` are left
from 0 to 255, for floats too.
"""


def preparation_of(text: str) -> Preparation:
    """The preset of that name, or what a TOML file at that path says, with the fields of a Preparation.

    Raises ValueError.
    """
    if text in PRESETS:
        return PRESETS[text]
    path = Path(text)
    try:
        if not path.is_file():
            known = ", ".join(PRESETS)
            raise ValueError(
                f"{text!r} is neither a file nor one of {known}; give one of these, or a TOML file"
            )
        values = toml_of(path)
    except OSError as error:
        raise ValueError(f"{text} is not readable ({error.strerror}); fix it, or give a preset") from error
    return Preparation.from_dict({"name": path.stem, **checked(text, values)})


def toml_of(path: Path) -> Mapping[str, Any]:
    """What a small TOML file says. Raises ValueError and OSError."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{path} is not a preparation: it has more than {MOST_BYTES:,} bytes; give only its fields"
        )
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable as TOML ({error}); fix it, or give a preset") from error


def checked(path: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same values, each of which is as its field must be. Raises ValueError."""
    for name, value in values.items():
        if name not in FIELDS:
            raise ValueError(f"{path}: a preparation has no {name}; it has {', '.join(FIELDS)}")
        sound, what = FIELDS[name]
        if not sound(value):
            raise ValueError(f"{path}: {name} cannot be {str(value)[:40]!r}; give {what}")
    return values


def one_of(*words: str) -> tuple[Callable[[object], bool], str]:
    """A field that has one of these words."""
    return lambda value: value in words, " or ".join(f'"{word}"' for word in words)


def is_number(value: object) -> bool:
    """Whether it is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def are_numbers(value: object) -> bool:
    """Whether it is a list of three numbers."""
    return isinstance(value, list) and len(value) == 3 and all(map(is_number, value))


def is_side(value: object) -> bool:
    """Whether it is a number of pixels that a picture's side may have, or 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_SIDE


SIDE = (is_side, f"pixels from 1 to {LARGEST_SIDE}, or 0 for the input's own size")
FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and bool(value), "a text"),
    "resize": one_of("shorter", "squash"),
    "resize_to": SIDE,
    "crop_size": SIDE,
    "filter": one_of("bicubic", "bilinear"),
    "divide": (lambda value: is_number(value) and value >= SMALLEST, "a number above 0, such as 255 or 1"),
    "mean": (are_numbers, "three numbers, one for each channel"),
    "deviation": (
        lambda value: are_numbers(value) and min(value) >= SMALLEST,
        "three numbers above 0, one for each channel",
    ),
    "order": one_of("RGB", "BGR"),
}
"""What a file may contain: a check of each value, and the text of what is allowed."""


def prepared(
    image: Image.Image, preparation: Preparation, height: int, width: int, dtype: str, layout: str
) -> NDArray[Any]:
    """The tensor of a picture of any size and mode: [3, height, width], or for NHWC [height, width, 3].

    `dtype` is FP32, FP16 or UINT8, as KServe calls them. Raises ValueError.
    """
    if dtype not in PIXELS:
        raise ValueError(f"a picture is sent as {', '.join(PIXELS)}, not as {dtype or 'nothing'}")
    pixels = np.asarray(cut(image, preparation, height, width).convert("RGB"))
    pixels = pixels[:, :, ::-1] if preparation.order == "BGR" else pixels
    pixels = pixels if layout == "NHWC" else pixels.transpose(2, 0, 1)
    if dtype == "UINT8":
        return np.ascontiguousarray(pixels)
    return scaled(pixels, preparation, layout).astype(PIXELS[dtype], copy=False)


def scaled(pixels: NDArray[np.uint8], preparation: Preparation, layout: str) -> NDArray[np.float32]:
    """Pixels divided and normalised, channel by channel."""
    by_channel = (-1,) if layout == "NHWC" else (-1, 1, 1)
    made = pixels.astype(np.float32, order="C")
    made /= np.float32(preparation.divide)
    made -= np.array(preparation.mean, dtype=np.float32).reshape(by_channel)
    made /= np.array(preparation.deviation, dtype=np.float32).reshape(by_channel)
    return made


def cut(image: Image.Image, preparation: Preparation, height: int, width: int) -> Image.Image:
    """The picture resized, and of that what lies in the middle, of the size asked for. Raises ValueError."""
    box = (grown(width, preparation, height, width), grown(height, preparation, height, width))
    size = box if preparation.resize == "squash" else covering(image.size, box)
    if size != image.size:
        image = image.resize(size, FILTERS[preparation.filter])
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def grown(side: int, preparation: Preparation, height: int, width: int) -> int:
    """A side of the size at which a picture is resized for an input of `height` and `width`."""
    if not preparation.resize_to:
        return side
    base = preparation.crop_size or min(height, width)
    if preparation.resize_to < base:
        raise ValueError(
            f"preparation {preparation.name}: resize_to {preparation.resize_to} does not cover {base} pixels;"
            f" give {base} or more, or 0"
        )
    return (side * preparation.resize_to + base // 2) // base


def covering(size: tuple[int, int], box: tuple[int, int]) -> tuple[int, int]:
    """The least size in proportion to a picture's that covers a box; the longer side is cut to an integer.

    >>> covering((640, 427), (224, 224))
    (335, 224)
    """
    (width, height), (wide, high) = size, box
    if width * high <= height * wide:
        return wide, wide * height // width
    return high * width // height, high
