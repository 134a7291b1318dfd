"""The golden embeddings: one endpoint's answer to every picture, before any load."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from swarm.errors import UsageError
from users.endpoint import Endpoint
from users.errors import RequestError
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.transport.base import EMBEDDING_SIZE, Transport, rotation


def golden_embeddings(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet, timeout_s: float
) -> NDArray[np.float32]:
    """float32 of shape [n, 512], one row a picture. Raises UsageError where the endpoint does not answer."""
    golden = np.zeros((len(images), EMBEDDING_SIZE), dtype=np.float32)
    try:
        with transport(endpoint, timeout_s) as client:
            # One by one: a batch would be the first of its size, and its cost would not be told.
            for indices in rotation(len(images), 1):
                reply = client.send(transport.prepare(images, indices, endpoint))
                check_form(reply, len(indices))
                golden[list(indices)] = reply.embeddings
    except RequestError as error:
        raise UsageError(
            f"{endpoint.name} {endpoint.shown}: no golden embeddings from it ({error})"
        ) from error
    return golden


def check_agreement(firsts: Mapping[str, NDArray[np.float32]], min_cosine: float) -> dict[str, float]:
    """Cosine of each endpoint's embedding of the first picture with the first one's. Raises UsageError."""
    reference = next(iter(firsts), "")
    cosines = {name: float(firsts[reference] @ first) for name, first in firsts.items()}
    worst = min(cosines, key=lambda name: cosines[name], default="")
    if worst and cosines[worst] < min_cosine:
        raise UsageError(
            f"{worst} gives another embedding than {reference} for the same picture "
            f"(cosine {cosines[worst]:.4f}): serve the same weights on both, or lower --min-cosine"
        )
    return cosines
