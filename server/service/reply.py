"""What the service answers: embeddings as JSON, and how long each part of the request took."""

from __future__ import annotations

import functools

import numpy as np
from fastapi.responses import JSONResponse
from numpy.typing import NDArray


def write_reply(embeddings: NDArray[np.float32], model: str, parts_ns: dict[str, int]) -> JSONResponse:
    """Embeddings, float32 [n, dim], and the parts' nanoseconds as milliseconds in `Server-Timing`."""
    content = {"embeddings": embeddings.tolist(), "model": model, "dim": embeddings.shape[1]}
    timing = ", ".join(f"{part};dur={took_ns / 1e6:.3f}" for part, took_ns in parts_ns.items())
    return JSONResponse(content, headers={"Server-Timing": timing})


def unit_vectors(images: int, dim: int) -> NDArray[np.float32]:
    """The same unit vector for each image, float32 [images, dim]."""
    return np.broadcast_to(_unit_vector(dim), (images, dim))


@functools.cache
def _unit_vector(dim: int) -> NDArray[np.float32]:
    # Written with as many digits as an embedding, which a vector of equal or round numbers is not.
    vector = np.random.default_rng(0).standard_normal(dim)
    return (vector / np.linalg.norm(vector)).astype(np.float32)
