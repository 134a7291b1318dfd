"""What goes into Triton's `input`, payload by payload; how it is written is the protocol's matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import serialize_byte_tensor

from users.endpoint import Payload
from users.inputs.images import ImageSet

Make = Callable[[ImageSet, tuple[int, ...]], NDArray[Any]]


def scaled(images: ImageSet, indices: tuple[int, ...]) -> NDArray[np.float32]:
    """The model's own input, 602,112 bytes a picture: float32 of shape [n, 3, 224, 224]."""
    return images.tensors[list(indices)]


def pixels(images: ImageSet, indices: tuple[int, ...]) -> NDArray[np.uint8]:
    """The pixels before they are scaled, 150,528 bytes a picture: uint8 of shape [n, 3, 224, 224]."""
    return images.pixels[list(indices)]


def files(images: ImageSet, indices: tuple[int, ...]) -> NDArray[np.object_]:
    """JPEG files, about 10 KB a picture: bytes of shape [n, 1]."""
    column = np.empty((len(indices), 1), dtype=np.object_)
    column[:, 0] = [images.jpegs[index] for index in indices]
    return column


TENSORS: Mapping[Payload, Make] = {"fp32": scaled, "json": scaled, "uint8": pixels, "jpeg": files}


def raw(tensor: NDArray[Any]) -> bytes:
    """Triton's binary form of a tensor; a file goes behind its length in 4 bytes, the lowest first."""
    return bytes(serialize_byte_tensor(tensor).item()) if tensor.dtype == np.object_ else tensor.tobytes()
