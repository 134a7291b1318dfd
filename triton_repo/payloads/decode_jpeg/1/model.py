"""Triton's Python backend decoding JPEG files as open_clip's transform for ViT-B/32 does."""

import io
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, JpegImagePlugin  # noqa: F401  (the plugin, so that the first request need not import it)
from preprocess import preprocess, resized
from tensors import read_strings, tensor_of

read_strings()

MOST_PIXELS = 40_000_000


class TritonPythonModel:
    """JPEG files, BYTES [n, 1], to pixels, FP32 [n, 3, 224, 224]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Make a thread for each core: Pillow releases Python's lock while it decodes and resizes."""
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
    """One file's pixels, or what is wrong with it: other requests' images are not to suffer from this one."""
    try:
        return preprocess(opened(file))
    except ValueError as error:
        return error


def opened(file: bytes) -> Image.Image:
    """The decoded image; its size is checked in the file's header, before any pixel is decoded.

    Raises ValueError, which says what is wrong with the file.
    """
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
        raise ValueError("is not a complete JPEG file: send its bytes unencoded, not in base64") from None
    raise ValueError(f"has too many pixels: send at most {MOST_PIXELS:,}")
