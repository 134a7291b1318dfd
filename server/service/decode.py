"""From the bytes of a request to what the model takes; everything a client can get wrong ends here."""

import base64
import io
import json
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from server.errors import Refusal
from server.models.preprocess import preprocess, resized
from server.settings import Settings

FORMATS = ("JPEG", "PNG", "WEBP")
SHAPE = 'send {"images": [base64 JPEG, ...]}'
SPARE_COMMAS = 1000
MAX_SCANS = 100
"""Of a progressive JPEG, which usually has about 10; each costs a pass over all pixels, but few bytes."""
SPARE_STEPS, BYTES_A_STEP = 1000, 256
PngImagePlugin.MAX_TEXT_MEMORY = 2**22
"""Bytes of a PNG's unpacked texts, which are not used."""


@dataclass(frozen=True)
class PreparedImages:
    """The images of one request, float32 [n, 3, 224, 224], and what they took, in nanoseconds."""

    pixels: NDArray[np.float32]
    decode_ns: int
    preprocess_ns: int


def prepare(body: bytes, settings: Settings) -> PreparedImages:
    """Decode and preprocess every image of a request, or raise Refusal.

    Pillow cannot be interrupted, so the time is looked at between images: a request takes at most
    `max_decode_s` of CPU time and one image more. What one image takes is bounded by its pixels, a JPEG's
    scans, and the steps in which its file is read; with 40 million pixels that is about 2 seconds.
    """
    began_s = time.thread_time()
    start = time.perf_counter_ns()
    texts = parse(body, settings.max_batch)
    decode_ns = time.perf_counter_ns() - start
    preprocess_ns = 0
    pixels = []
    # One at a time: 32 photographs decoded at once would take gigabytes.
    for index, text in enumerate(texts):
        # Of this thread: what others compute meanwhile is not the client's fault.
        if time.thread_time() - began_s > settings.max_decode_s:
            raise Refusal(
                413,
                f"images[{index}] and later ones were not decoded: those before took more than "
                f"{settings.max_decode_s:g} s to decode, so send fewer or smaller ones per request",
            )
        start = time.perf_counter_ns()
        image = decode(text, f"images[{index}]", settings.max_pixels)
        decoded = time.perf_counter_ns()
        pixels.append(preprocess(image))
        decode_ns += decoded - start
        preprocess_ns += time.perf_counter_ns() - decoded
    start = time.perf_counter_ns()
    stacked = np.stack(pixels)
    return PreparedImages(stacked, decode_ns, preprocess_ns + time.perf_counter_ns() - start)


def parse(body: bytes, max_batch: int) -> list[str]:
    """The base64 texts of a request's images, 1 to `max_batch` of them."""
    # Parsing millions of tiny values would hold Python's lock, and so the event loop, for seconds.
    if body.count(b",") > max_batch + SPARE_COMMAS:
        raise Refusal(413, f"the body has far more than {max_batch} values: send at most {max_batch} images")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, f"the body is not JSON: {SHAPE}") from None
    images = message.get("images") if isinstance(message, dict) else None
    if not isinstance(images, list):
        raise Refusal(400, f"the body has no list `images`: {SHAPE}")
    if not images:
        raise Refusal(400, "`images` is empty: send at least one image")
    if len(images) > max_batch:
        raise Refusal(413, f"`images` has {len(images)} images: send at most {max_batch} per request")
    for index, text in enumerate(images):
        if not isinstance(text, str):
            raise Refusal(400, f"images[{index}] is not a string: send base64")
    return images


def decode(text: str, name: str, max_pixels: int) -> Image.Image:
    """One image from base64; its size is checked in the file's header, before any pixel is decoded."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise Refusal(400, f"{name} is not base64") from None
    try:
        image = Image.open(File(data, name), formats=FORMATS)
        _check_size(image, name, max_pixels)
        _check_scans(data, image, name)
        image.load()
    except Refusal:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refusal(413, f"{name} has too many pixels: send at most {max_pixels:,}") from None
    except Exception:
        # Pillow's decoders raise many kinds of errors on damaged files; all mean the same here.
        raise Refusal(400, f"{name} is not a complete JPEG, PNG or WebP image") from None
    return image


class File(io.BytesIO):
    """An image's bytes, which Pillow has to read in reasonable steps.

    It reads a JPEG's markers and a PNG's chunks in Python, one or more steps each: millions of empty ones
    would hold Python's lock, and so the event loop, for seconds.
    """

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self._name = name
        self._steps = SPARE_STEPS + len(data) // BYTES_A_STEP

    def read(self, size: int | None = -1, /) -> bytes:
        """As io.BytesIO does; Refusal where it was asked far too often."""
        self._steps -= 1
        if self._steps < 0:
            raise Refusal(413, f"{self._name} has far too many segments: send it as a plain JPEG")
        return super().read(size)


def _check_scans(data: bytes, image: Image.Image, name: str) -> None:
    # No other place of a JPEG's pixels holds these two bytes.
    if image.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > MAX_SCANS:
        raise Refusal(413, f"{name} has more than {MAX_SCANS} scans: send it as a plain JPEG")


def _check_size(image: Image.Image, name: str, max_pixels: int) -> None:
    # A long thin image grows when its shorter side is resized, so that size counts as well.
    for width, height in (image.size, resized(image.size)):
        if width * height > max_pixels:
            raise Refusal(413, f"{name} has too many pixels, {width} x {height}: send at most {max_pixels:,}")
