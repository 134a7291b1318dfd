"""Is the answer an embedding, and that of the picture sent? Speed must not come from wrong answers."""

import math

import numpy as np
from numpy.typing import NDArray

from users.errors import ErrorKind, RequestError
from users.transport.base import EMBEDDING_SIZE, PreparedRequest, Reply

NORM_TOLERANCE = 1e-2
LEAST_SQUARE, MOST_SQUARE = (1 - NORM_TOLERANCE) ** 2, (1 + NORM_TOLERANCE) ** 2
SAMPLE_EVERY = 8
"""A user's first answer of a phase and every eighth after it are held against the golden embeddings."""


def check_form(reply: Reply, images: int) -> None:
    """Shape [images, 512], finite, length 1. Raises RequestError(bad-reply)."""
    embeddings = reply.embeddings
    if embeddings.shape != (images, EMBEDDING_SIZE):
        raise RequestError(ErrorKind.BAD_REPLY, f"shape {embeddings.shape} for {images} images")
    for row in embeddings:
        square = float(row.dot(row))  # of one or a few rows; einsum's preparations take ten times as long
        if not LEAST_SQUARE <= square <= MOST_SQUARE:
            fault = "whose length is not 1" if math.isfinite(square) else "that is not finite"
            raise RequestError(ErrorKind.BAD_REPLY, f"an embedding {fault}")


def check_embeddings(
    reply: Reply, prepared: PreparedRequest, golden: NDArray[np.float32], min_cosine: float
) -> None:
    """Each row against the golden embedding of its picture. Raises RequestError(wrong-embedding)."""
    pairs = zip(reply.embeddings, prepared.indices, strict=True)
    if not all(float(row.dot(golden[index])) >= min_cosine for row, index in pairs):
        raise RequestError(
            ErrorKind.WRONG_EMBEDDING, f"cosine below {min_cosine:g} with the golden embedding"
        )
