"""Is the answer an embedding, and that of the picture sent? Speed must not come from wrong answers."""

import math

import numpy as np
from numpy.typing import NDArray

from users.codecs.base import PreparedRequest
from users.contract import Contract
from users.errors import ErrorKind, RequestError
from users.transport.base import Reply

NORM_TOLERANCE = 1e-2
LEAST_SQUARE, MOST_SQUARE = (1 - NORM_TOLERANCE) ** 2, (1 + NORM_TOLERANCE) ** 2
SAMPLE_EVERY = 8
"""A user's first answer of a phase and every eighth after it are compared with the golden embeddings."""


def check_form(reply: Reply, items: int, contract: Contract) -> None:
    """Shape [items, dimension], finite, of length 1 where that is known. Raises RequestError(bad-reply)."""
    embeddings, dimension = reply.embeddings, contract.dimension
    if embeddings.shape != (items, dimension or embeddings.shape[-1]):
        said = f", not {dimension} numbers each" if dimension else ""
        raise RequestError(ErrorKind.BAD_REPLY, f"shape {embeddings.shape} for {items} images{said}")
    for row in embeddings:
        square = float(row.dot(row))  # of one or a few rows; einsum's preparations take ten times as long
        if LEAST_SQUARE <= square <= MOST_SQUARE:
            continue
        if not math.isfinite(square):
            raise RequestError(ErrorKind.BAD_REPLY, "an embedding that is not finite")
        if contract.unit:
            raise RequestError(ErrorKind.BAD_REPLY, "an embedding whose length is not 1")


def has_unit_rows(embeddings: NDArray[np.float32]) -> bool:
    """Whether all vectors have length 1."""
    return all(LEAST_SQUARE <= float(row.dot(row)) <= MOST_SQUARE for row in embeddings)


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Of two vectors; NaN where one has no length."""
    lengths = math.sqrt(float(one.dot(one)) * float(other.dot(other)))
    return float(one.dot(other)) / lengths if lengths else math.nan


def check_embeddings(
    reply: Reply, prepared: PreparedRequest, golden: NDArray[np.float32], min_cosine: float
) -> None:
    """Each row against the golden embedding of its picture, where it has one.

    Raises RequestError(wrong-embedding). `golden`: float32 of shape [n, dimension], of the first n pictures.
    """
    pairs = zip(reply.embeddings, prepared.indices, strict=True)
    if not all(cosine(row, golden[index]) >= min_cosine for row, index in pairs if index < len(golden)):
        raise RequestError(
            ErrorKind.WRONG_EMBEDDING, f"cosine below {min_cosine:g} with the golden embedding"
        )
