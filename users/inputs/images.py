"""The pictures a study sends: the same set, in the same order, to every endpoint."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import gevent
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from users.inputs.preprocess import CHANNELS, SIZE, to_pixels, to_tensor

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

    @property
    def sha256(self) -> str:
        """A name for exactly these pictures in exactly this order."""
        digest = hashlib.sha256()
        for jpeg in self.jpegs:
            digest.update(hashlib.sha256(jpeg).digest())
        return digest.hexdigest()

    @property
    def mean_jpeg_bytes(self) -> float:
        """Mean size of one JPEG in bytes."""
        return sum(map(len, self.jpegs)) / len(self.jpegs)


def load_images(folder: str) -> ImageSet:
    """The pictures of `folder`, or the default set where it is empty.

    JPEG files travel as they are, PNG files re-encoded as JPEG. Raises ImageSetError.
    """
    if not folder:
        version = importlib.metadata.version("scikit-image")
        return image_set(list(default_jpegs(DEFAULT_COUNT)), f"crops of scikit-image {version}'s photographs")
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


def default_jpegs(count: int) -> Iterator[bytes]:
    """`count` distinct 224-pixel crops of photographs, each a JPEG of 5 to 15 KB."""
    crops = [photograph_crops(photograph_folder() / name) for name in PHOTOGRAPHS]
    found = 0
    for round_of_crops in zip_longest_flat(crops):
        jpeg = encode_near(round_of_crops, TARGET_BYTES)
        if SMALLEST_BYTES <= len(jpeg) <= LARGEST_BYTES:
            yield jpeg
            found += 1
        if found == count:
            return
    raise ImageSetError(f"scikit-image's photographs gave only {found} of {count} pictures; use --images DIR")


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


def zip_longest_flat(groups: list[list[Image.Image]]) -> Iterator[Image.Image]:
    """One of each group in turn, until all are used up: neighbours in the set come from unlike pictures."""
    for index in range(max(map(len, groups))):
        for group in groups:
            if index < len(group):
                yield group[index]


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
