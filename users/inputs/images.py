"""The pictures a study sends, the same in the same order to every endpoint, and the tensors made of them.

Those are made by Pillow and NumPy alone: client hosts have no torch. The steps and constants are those of
open_clip's transform for ViT-B-32 (resize the shorter side to 224 with bicubic filtering, crop the centre,
scale to [0, 1], normalise by CLIP's mean and deviation); a test holds the two together.
"""

import hashlib
import importlib.metadata
import importlib.util
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gevent
import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = 224
CHANNELS = 3
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32).reshape(3, 1, 1)
STD = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32).reshape(3, 1, 1)
DEFAULT_COUNT = 64
MOST_PIXELS = 40_000_000
"""As many as the service takes: a few kilobytes of a file may claim billions."""
MOST_IMAGES = 256
"""More than this would only fill memory: a float32 tensor is 602 KB, and every one is kept prepared."""

PHOTOGRAPHS = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png",
    "retina.jpg", "rocket.jpg",
)  # fmt: skip
SMALLEST_BYTES, TARGET_BYTES, LARGEST_BYTES = 5_000, 10_000, 15_000


class ImageSetError(Exception):
    """The picture folder cannot be used; the text is a sentence for a person."""


@dataclass(frozen=True)
class ImageSet:
    """Pictures as JPEG bytes and as tensors, index by index the same picture.

    `jpegs`: n byte strings; `tensors`: float32 of shape [n, 3, 224, 224]; `source`: where they come from.
    """

    jpegs: tuple[bytes, ...]
    tensors: NDArray[np.float32]
    source: str

    def __len__(self) -> int:
        return len(self.jpegs)

    @cached_property
    def pixels(self) -> NDArray[np.uint8]:
        """What `tensors` are scaled from, uint8 of the same shape; made when first asked for, since most
        studies send none.
        """
        return np.stack([to_pixels(image) for image in opened(self.jpegs)])

    def batch(self, payload: str, indices: Sequence[int]) -> NDArray[Any]:
        """What goes into Triton's `input` for n pictures, payload by payload.

        `uint8`: the pixels before they are scaled, 150,528 bytes a picture, of shape [n, 3, 224, 224].
        `jpeg`: files, about 10 KB a picture: bytes of shape [n, 1]. Others: the model's own input, 602,112
        bytes a picture: float32 of shape [n, 3, 224, 224].
        """
        if payload == "jpeg":
            column = np.empty((len(indices), 1), dtype=np.object_)
            column[:, 0] = [self.jpegs[index] for index in indices]
            return column
        return (self.pixels if payload == "uint8" else self.tensors)[list(indices)]

    @property
    def sha256(self) -> str:
        """A name for exactly these pictures in exactly this order."""
        digest = hashlib.sha256()
        for jpeg in self.jpegs:
            digest.update(hashlib.sha256(jpeg).digest())
        return digest.hexdigest()


def load_images(folder: str) -> ImageSet:
    """The pictures of `folder`, or the default set where it is empty.

    JPEG files travel as they are, PNG files re-encoded as JPEG. Raises ImageSetError.
    """
    if not folder:
        jpegs, version = default_jpegs(DEFAULT_COUNT), importlib.metadata.version("scikit-image")
        return image_set(jpegs, f"crops of scikit-image {version}'s photographs")
    paths = picture_paths(Path(folder))
    return image_set([read_jpeg(path) for path in paths], f"{len(paths)} files of {Path(folder).name}/")


def image_set(jpegs: list[bytes], source: str) -> ImageSet:
    """Decode once, and keep both forms. The tensors come from the JPEG bytes that the JPEG endpoints get."""
    tensors = np.zeros((len(jpegs), CHANNELS, SIZE, SIZE), dtype=np.float32)
    for index, image in enumerate(opened(jpegs)):
        tensors[index] = to_tensor(image)
    return ImageSet(tuple(jpegs), tensors, source)


def opened(jpegs: Sequence[bytes]) -> Iterator[Image.Image]:
    """The pictures of JPEG files, one after the other."""
    for jpeg in jpegs:
        yield Image.open(io.BytesIO(jpeg))
        gevent.sleep(0)  # large pictures take long, and Locust's heart must beat meanwhile


def picture_paths(folder: Path) -> list[Path]:
    """JPEG and PNG files of a folder by name; evenly spread over it where there are more than 256."""
    if not folder.is_dir():
        raise ImageSetError(f"--images {folder}: no such folder; name one that holds JPEG or PNG files")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".jpg", ".jpeg", ".png"})
    if not found:
        raise ImageSetError(f"--images {folder}: no .jpg, .jpeg or .png file in it")
    step = max(1.0, len(found) / MOST_IMAGES)
    return [found[int(index * step)] for index in range(min(len(found), MOST_IMAGES))]


def read_jpeg(path: Path) -> bytes:
    """One picture as JPEG bytes; raises ImageSetError where the file is no picture."""
    try:
        if not path.is_file():
            # A pipe would wait for somebody to write.
            raise OSError("no regular file")
        gevent.sleep(0)
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ImageSetError(f"--images: {path} has more than {MOST_PIXELS:,} pixels; scale it down")
            image.load()
            return data if image.format == "JPEG" else encode(image.convert("RGB"), 90)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ImageSetError(f"--images: {path} is not a readable JPEG or PNG picture; remove it") from error


def default_jpegs(count: int) -> list[bytes]:
    """`count` distinct 224-pixel crops of photographs, each a JPEG of 5 to 15 KB."""
    crops = [photograph_crops(photograph_folder() / name) for name in PHOTOGRAPHS]
    # One of each photograph in turn: neighbours in the set come from unlike pictures.
    in_turn = (crop for crop in itertools.chain(*itertools.zip_longest(*crops)) if crop is not None)
    jpegs = (encode_near(crop, TARGET_BYTES) for crop in in_turn)
    fit = (jpeg for jpeg in jpegs if SMALLEST_BYTES <= len(jpeg) <= LARGEST_BYTES)
    found = list(itertools.islice(fit, count))
    if len(found) < count:
        raise ImageSetError(
            f"scikit-image's photographs gave only {len(found)} of {count} pictures; use --images DIR"
        )
    return found


def photograph_folder() -> Path:
    """Where scikit-image keeps its pictures, found without importing it (which is slow)."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        raise ImageSetError(
            "scikit-image is not installed; install requirements-client.lock or use --images DIR"
        )
    return Path(spec.origin).parent / "data"


def photograph_crops(path: Path) -> list[Image.Image]:
    """Squares of 224 pixels on a grid over a photograph, at most 8, overlapping by half at most."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    corners = [
        (left, top)
        for top in range(0, image.height - SIZE + 1, SIZE // 2)
        for left in range(0, image.width - SIZE + 1, SIZE // 2)
    ]
    chosen = corners[:: max(1, len(corners) // 8)][:8]
    return [image.crop((left, top, left + SIZE, top + SIZE)) for left, top in chosen]


def encode_near(image: Image.Image, target_bytes: int) -> bytes:
    """The JPEG of a quality from 30 to 95 whose size lies nearest to `target_bytes`."""
    return min(
        (encode(image, quality) for quality in range(30, 96, 5)),
        key=lambda jpeg: abs(len(jpeg) - target_bytes),
    )


def encode(image: Image.Image, quality: int) -> bytes:
    """JPEG bytes of a picture."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


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
    shorter = min(image.size)
    if shorter == SIZE:
        return image
    size = (SIZE * image.width // shorter, SIZE * image.height // shorter)
    return image.resize(size, Image.Resampling.BICUBIC)


def centre_crop(image: Image.Image) -> Image.Image:
    """The 224×224 square in the middle."""
    left = round((image.width - SIZE) / 2)
    top = round((image.height - SIZE) / 2)
    return image.crop((left, top, left + SIZE, top + SIZE))
