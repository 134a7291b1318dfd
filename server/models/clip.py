"""The service's model: an open_clip image tower in PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from server.errors import SetUpError
from server.models.weights import ImageTower, load_tower, weights_sha256
from server.settings import Settings
from server.spec import DIM, IMAGE_SIZE


class ClipEmbedder:
    """The Embedder that computes: one image tower on one device."""

    dim = DIM
    weights_sha256 = ""

    def __init__(self, settings: Settings) -> None:
        self._spec = settings.spec
        self._threads = settings.threads
        self.model = self._spec.name
        self.weights = self._spec.weights
        self.device = choose_device(settings.device)
        self._tower: ImageTower | None = None

    def load(self) -> None:
        """Make the model, move it to its device and infer once."""
        if self._threads:
            torch.set_num_threads(self._threads)
        tower = load_tower(self._spec)
        self.weights_sha256 = weights_sha256(tower)
        self._tower = tower.to(self.device)
        self.embed(np.zeros((1, 3, IMAGE_SIZE, IMAGE_SIZE), np.float32))

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to L2-normalised float32 [n, 512]; returns when the device is done."""
        if self._tower is None:
            raise RuntimeError("embed was called before load")
        with torch.inference_mode():
            embeddings = self._tower(torch.from_numpy(pixels).to(self.device))
        return np.asarray(embeddings.float().cpu().numpy(), dtype=np.float32)


def choose_device(name: str) -> str:
    """A device that is there: `auto` takes the first of CUDA, MPS and the CPU."""
    if name == "auto":
        mps = torch.backends.mps.is_available()
        return "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise SetUpError(f"INFERSWARM_DEVICE is {name}, but PyTorch finds no CUDA device: set cpu or auto.")
    return name
