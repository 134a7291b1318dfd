"""What the service asks of a model."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Images to embeddings. `load` comes first; both are called from one thread only, save in a gateway."""

    model: str
    weights: str
    weights_sha256: str
    dim: int
    device: str

    def load(self) -> None:
        """Make the model and warm it up."""

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to L2-normalised float32 [n, dim], in the same order."""
        ...


@runtime_checkable
class ClosableEmbedder(Protocol):
    """A model elsewhere: closing it ends the calls to it that are under way."""

    def close(self) -> None:
        """Let the connection go."""
