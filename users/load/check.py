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
LEAST_SCALE = 1e-2
"""Single numbers below it differ by their rounding alone, where a model computes in half precision."""
SAMPLE_EVERY = 8
"""A user's first answer of a phase and every eighth after it are compared with the golden embeddings."""


def check_form(reply: Reply, items: int, contract: Contract) -> None:
    """Shape [items, dimension], not empty, finite, of length 1 where that is known.

    Raises RequestError(bad-reply).
    """
    embeddings, dimension = reply.embeddings, contract.dimension
    if not embeddings.size:
        raise RequestError(ErrorKind.BAD_REPLY, f"an empty output, of shape {embeddings.shape}")
    if embeddings.shape != (items, dimension or embeddings.shape[-1]):
        said = f", not {dimension} numbers each" if dimension else ""
        items_text = "1 item" if items == 1 else f"{items} items"
        raise RequestError(ErrorKind.BAD_REPLY, f"shape {embeddings.shape} for {items_text}{said}")
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


def similarity(one: NDArray[np.float32], other: NDArray[np.float32], scale: float = LEAST_SCALE) -> float:
    """The cosine of two vectors; NaN where one has no length.

    The cosine of single numbers, as rerankers give, is 1 or -1 whatever they are. So of these it is 1 less a
    tenth of their distance, which is relative to the largest of them and of `scale`: where the least is
    0.999, they may differ by 1 %.
    """
    if one.size == 1:
        first, second = float(one[0]), float(other[0])
        return 1 - abs(first - second) / max(abs(first), abs(second), scale) / 10
    lengths = math.sqrt(float(one.dot(one)) * float(other.dot(other)))
    return float(one.dot(other)) / lengths if lengths else math.nan


def describe_difference(one: NDArray[np.float32], other: NDArray[np.float32]) -> str:
    """Two vectors by their cosine, and single numbers as they are, as sentences have them in brackets."""
    if one.size == 1:
        return f"{one[0]:.4g}, not {other[0]:.4g}"
    return f"cosine {similarity(one, other):.4f}"


def check_embeddings(
    reply: Reply, prepared: PreparedRequest, golden: NDArray[np.float32], min_cosine: float
) -> None:
    """Each row against the golden embedding of its picture, where it has one.

    Raises RequestError(wrong-embedding). `golden`: float32 of shape [n, dimension], of the first n pictures.
    """
    single = golden.shape[1] == 1
    scale = float(np.abs(golden).max()) if single else LEAST_SCALE
    pairs = zip(reply.embeddings, prepared.indices, strict=True)
    if all(similarity(row, golden[at], scale) >= min_cosine for row, at in pairs if at < len(golden)):
        return
    said = f"cosine below {min_cosine:g} with the golden embedding"
    if single:
        said = f"a value more than {(1 - min_cosine) * 1000:g} % from the golden one"
    raise RequestError(ErrorKind.WRONG_EMBEDDING, said)
