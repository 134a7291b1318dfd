"""Pictures as JPEG files: those of a folder, and crops of the photographs that scikit-image has."""

import importlib.util
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from users.inputs.pause import give_way

CROP = 224
DEFAULT_COUNT = 64
MOST_PIXELS = 40_000_000
"""As many as the service accepts: a file of a few kilobytes may claim billions."""
SUFFIXES = frozenset((".jpg", ".jpeg", ".jpe", ".jfif", ".png"))
JPEG = b"\xff\xd8\xff"
"""What every kind of JPEG file begins with, also one of several pictures, which Pillow calls MPO."""
EIGHT_BITS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")
"""Pillow's modes of pictures without a further reading of their colours."""
SHORT = re.compile(r"\.[a-z0-9]{1,5}")
"""A suffix as sentences have it."""
ORIENTATION, TURNED = 0x0112, range(2, 9)
"""The field of EXIF that says how a picture is to be turned, and its values where it is."""
DEPTH_AT = 24
"""Where a PNG file has the bits of a sample."""

PHOTOGRAPHS = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png",
    "retina.jpg", "rocket.jpg",
)  # fmt: skip
SMALLEST_BYTES, TARGET_BYTES, LARGEST_BYTES = 5_000, 10_000, 15_000
"""Of a crop of 224 pixels."""


class ImageSetError(Exception):
    """The pictures or the texts cannot be used; the text is a sentence for a person."""


def picture_paths(folder: Path, most_bytes: int) -> list[Path]:
    """JPEG and PNG files of a folder by name; evenly spread over it where all are more than the bound."""
    if not folder.is_dir():
        raise ImageSetError(f"--images {folder}: no such folder; name one that holds JPEG or PNG files")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise ImageSetError(f"--images {folder}: no .jpg, .jpeg or .png file in it")
    return [found[index] for index in spread([size_of(path) for path in found], most_bytes)]


def size_of(path: Path) -> int:
    """The bytes of a file; 0 where nothing can be read, which shows when it is."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def spread(sizes: Sequence[int], most: int) -> list[int]:
    """Indices evenly spread over files of these sizes, as many as make no more than `most`, but 1 at least.

    >>> spread([2, 2, 2, 2], 8), spread([2, 2, 2, 2], 5), spread([9, 9], 5)
    ([0, 1, 2, 3], [0, 2], [0])
    """
    count = len(sizes)
    while True:
        chosen = [number * len(sizes) // count for number in range(count)]
        total = sum(sizes[index] for index in chosen)
        if total <= most or count == 1:
            return chosen
        count = max(1, min(count - 1, count * most // total))


def read_jpeg(path: Path) -> bytes:
    """One picture as JPEG bytes; raises ImageSetError where the file is no picture."""
    try:
        if not path.is_file():
            # A pipe would wait for a writer.
            raise OSError("not a regular file")
        give_way()
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ImageSetError(f"--images: {path} has more than {MOST_PIXELS:,} pixels; scale it down")
            image.load()
            return (
                data if data.startswith(JPEG) else encode(flattened(image, path, data), 90, profile_of(image))
            )
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ImageSetError(f"--images: {path} is not a readable JPEG or PNG picture; remove it") from error


def flattened(image: Image.Image, path: Path, data: bytes) -> Image.Image:
    """A picture of a file that is no JPEG as one can hold it: in 8 bits, upright, on white if transparent.

    Raises ImageSetError where that is not one certain picture.
    """
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise ImageSetError(f"--images: {path} has {frames} frames; save the one that is meant as a file")
    deep = image.mode.startswith("I") and image.format == "PNG"
    if image.mode not in EIGHT_BITS and not deep:
        raise ImageSetError(f"--images: {path} has colours of the kind {image.mode}; save it as 8-bit RGB")
    # Pillow compares a transparent colour of another depth with pixels of 8 bits, and finds none or others.
    bits = data[DEPTH_AT] if image.format == "PNG" else 8
    if "transparency" in image.info and image.mode not in ("1", "P") and bits != 8:
        raise ImageSetError(
            f"--images: {path} has a transparent colour of {bits} bits; save it as 8-bit RGBA"
        )
    if deep:
        # Pillow cuts what is above 255 off. A PNG's 16 bits reach from black to white.
        image = Image.fromarray(np.round(np.asarray(image) / 257).astype(np.uint8))
    elif image.has_transparency_data:
        # Without it a picture's hidden colours would show.
        pixels = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", pixels.size, "white"), pixels)
    return ImageOps.exif_transpose(image).convert("RGB")


def profile_of(image: Image.Image) -> bytes | None:
    """The profile of a picture's colours, which are not changed; one of greys is none of RGB."""
    found: bytes | None = image.info.get("icc_profile")
    return found if image.mode in ("P", "PA", "RGB", "RGBA") else None


def oddity(jpeg: bytes) -> str:
    """Why servers may not read the same pixels from a JPEG file, as the end of a sentence; mostly nothing.

    What is prepared here, and our own servers, do as open_clip and torchvision do: they turn nothing, and
    apply no profile.
    """
    with Image.open(io.BytesIO(jpeg)) as image:
        if image.mode == "CMYK":
            return "has CMYK colours"
        turned = image.getexif().get(ORIENTATION) in TURNED
    return "is to be turned, as its EXIF data say" if turned else ""


def left_out(folder: Path, taken: int) -> str:
    """How many files of a folder are not sent, and why, where `taken` are: `2 .webp, 1 beyond --pool-mb`."""
    kinds: Counter[str] = Counter()
    for path in folder.iterdir():
        if path.suffix.lower() in SUFFIXES:
            kinds["beyond --pool-mb"] += 1
        elif not path.name.startswith("."):
            kinds["folder" if path.is_dir() else suffix_of(path)] += 1
    kinds["beyond --pool-mb"] -= taken
    several = {"folder": "folders"} if kinds["folder"] > 1 else {}
    return ", ".join(f"{n} {several.get(kind, kind)}" for kind, n in sorted(kinds.items()) if n > 0)


def suffix_of(path: Path) -> str:
    """A file's suffix in lower case, if it is one that sentences can have."""
    suffix = path.suffix.lower()
    return suffix if SHORT.fullmatch(suffix) else "of other kinds"


def default_jpegs(side: int = CROP) -> list[bytes]:
    """At most 64 distinct squares of photographs, each a JPEG of `side` pixels; exactly 64 up to 224 pixels.

    They are cut at `side` pixels, or, where the photograph is smaller, as large as it is; below 224 pixels,
    at 224; and then scaled. A square's quality is that at which it would come nearest to 10 KB at 224 pixels.
    """
    crops = [photograph_crops(photograph_folder() / name, side) for name in PHOTOGRAPHS]
    # One of each photograph in turn: neighbours in the set come from unlike pictures.
    in_turn = (crop for crop in itertools.chain(*itertools.zip_longest(*crops)) if crop is not None)
    sized = (jpeg for crop in in_turn if (jpeg := of_side(crop, side)))
    found = list(itertools.islice(sized, DEFAULT_COUNT))
    least = DEFAULT_COUNT if side <= CROP else 1
    if len(found) < least:
        raise ImageSetError(
            f"scikit-image's photographs gave only {len(found)} of {least} pictures; use --images DIR"
        )
    return found


def of_side(crop: Image.Image, side: int) -> bytes:
    """The JPEG of a square scaled to `side` pixels; empty where it is not of 5 to 15 KB at 224 pixels."""
    give_way()  # large pictures take long
    jpeg, quality = encode_near(scaled(crop, CROP), TARGET_BYTES)
    if not SMALLEST_BYTES <= len(jpeg) <= LARGEST_BYTES:
        return b""
    return jpeg if side == CROP else encode(scaled(crop, side), quality)


def scaled(image: Image.Image, side: int) -> Image.Image:
    """A square picture with sides of so many pixels."""
    return image if image.width == side else image.resize((side, side), Image.Resampling.BICUBIC)


def photograph_folder() -> Path:
    """Where scikit-image keeps its pictures, found without importing it (which is slow)."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        raise ImageSetError(
            "scikit-image is not installed; install requirements-client.lock or use --images DIR"
        )
    return Path(spec.origin).parent / "data"


def photograph_crops(path: Path, side: int = CROP) -> list[Image.Image]:
    """Squares on a grid over a photograph, at most 8, overlapping by half at most.

    Of `side` pixels, but not less than 224, nor more than the photograph has.
    """
    with Image.open(path) as photograph:
        image = photograph.convert("RGB")
    cut = max(CROP, min(side, *image.size))
    corners = [
        (left, top)
        for top in range(0, image.height - cut + 1, cut // 2)
        for left in range(0, image.width - cut + 1, cut // 2)
    ]
    chosen = corners[:: max(1, len(corners) // 8)][:8]
    return [image.crop((left, top, left + cut, top + cut)) for left, top in chosen]


def encode_near(image: Image.Image, target_bytes: int) -> tuple[bytes, int]:
    """The JPEG of a quality from 30 to 95 whose size lies nearest to `target_bytes`, and that quality."""
    made = ((encode(image, quality), quality) for quality in range(30, 96, 5))
    return min(made, key=lambda one: abs(len(one[0]) - target_bytes))


def encode(image: Image.Image, quality: int, profile: bytes | None = None) -> bytes:
    """JPEG bytes of a picture."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, icc_profile=profile)
    return buffer.getvalue()
