"""Triton's Python backend decoding JPEG files as open_clip's transform for ViT-B/32 does."""

import io
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, JpegImagePlugin  # noqa: F401  (the plugin, so that the first request need not import it)
from tensors import read_strings, tensor_of

read_strings()

SIZE = 224
MOST_PIXELS = 40_000_000
# OpenAI CLIP's statistics of R, G and B.
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32).reshape(3, 1, 1)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32).reshape(3, 1, 1)


class TritonPythonModel:
    """JPEG files, BYTES [n, 1], to pixels, FP32 [n, 3, 224, 224]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Make a thread for each core: Pillow lets go of Python's lock while it decodes and resizes."""
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch; one with a file that is no JPEG fails alone."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "input").as_numpy() for request in requests]
        files = np.concatenate(inputs).ravel()
        # To hand an only one over to a thread would cost as much as to decode it.
        each = map if len(files) == 1 else self._threads.map
        made = each(attempt, files)
        return [respond(list(itertools.islice(made, len(one)))) for one in inputs]

    def finalize(self) -> None:
        """Let the threads go."""
        self._threads.shutdown()


def respond(made: list[np.ndarray | ValueError]) -> Any:
    """The response to one request: its images' pixels, or what is wrong with the first that has none."""
    for index, one in enumerate(made):
        if isinstance(one, ValueError):
            text = f"image {index} of the request {one}"
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(text, pb_utils.TritonError.INVALID_ARG)
            )
    return pb_utils.InferenceResponse([tensor_of("pixels", np.stack(made))])


def attempt(file: bytes) -> np.ndarray | ValueError:
    """What `pixels_of` returns or raises: other requests' images are not to suffer from this one."""
    try:
        return pixels_of(file)
    except ValueError as error:
        return error


def pixels_of(file: bytes) -> np.ndarray:
    """One file as float32 [3, 224, 224], normalised; ValueError says what is wrong with it."""
    image = opened(file)
    width, height = resized(image.size)
    left, top = round((width - SIZE) / 2), round((height - SIZE) / 2)
    # Resized and cropped in its own mode, and RGB only then, as in open_clip.
    square = image.resize((width, height), Image.Resampling.BICUBIC).crop(
        (left, top, left + SIZE, top + SIZE)
    )
    made = np.asarray(square.convert("RGB")).transpose(2, 0, 1).astype(np.float32, order="C")
    made /= np.float32(255)
    made -= MEAN
    made /= STD
    return made


def opened(file: bytes) -> Image.Image:
    """The decoded image; its size is checked in the file's header, before any pixel is decoded."""
    try:
        image = Image.open(io.BytesIO(file), formats=["JPEG"])
        # A long thin image grows when its shorter side is resized, so that size counts as well.
        if max(width * height for width, height in (image.size, resized(image.size))) <= MOST_PIXELS:
            image.load()
            return image
    except Image.DecompressionBombError:
        pass
    except Exception:
        # Pillow's decoders raise many kinds of errors on damaged files; all mean the same here.
        raise ValueError("is not a whole JPEG file: send its bytes as they are, not in base64") from None
    raise ValueError(f"has too many pixels: send at most {MOST_PIXELS:,}")


def resized(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height in pixels once the shorter side is 224; the longer is cut to a whole pixel."""
    width, height = size
    if width <= height:
        return SIZE, int(SIZE * height / width)
    return int(SIZE * width / height), SIZE
