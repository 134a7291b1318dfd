"""A model that answers with the colour of each image; run as a program, the whole service with it."""

import sys
import threading
import time

import numpy as np

from server.models.preprocess import MEAN, STD
from server.service import command

DEADLINE_S = 20


class ColourEmbedder:
    """An embedding is the mean colour; `gate` holds every inference until it is set."""

    model, weights, weights_sha256, dim, device = "colour", "none", "0", 3, "cpu"

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.load_gate = threading.Event()
        self.load_gate.set()
        self.entered = threading.Event()
        self.batches = []

    def load(self):
        assert self.load_gate.wait(DEADLINE_S)

    def embed(self, pixels):
        self.batches.append(len(pixels))
        self.entered.set()
        assert self.gate.wait(DEADLINE_S)
        return (pixels.mean(axis=(2, 3)) * np.float32(STD) + np.float32(MEAN)).astype(np.float32)


class SlowEmbedder(ColourEmbedder):
    """Takes a while for each request, like a model."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds

    def embed(self, pixels):
        time.sleep(self._seconds)
        return super().embed(pixels)


if __name__ == "__main__":
    # No PyTorch: the service is up in a second.
    command.embedder_of = lambda settings: SlowEmbedder(float(sys.argv[1]))
    sys.exit(command.main([]))
