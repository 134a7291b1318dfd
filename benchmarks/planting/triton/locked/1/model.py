# mypy: ignore-errors
"""Triton's Python backend sleeping as an inference does, mostly under a lock of all instances."""

import fcntl
import os
import tempfile
import time
from typing import Any

from tensors import images_of, unit_vectors

FREE_S, LOCKED_S = 0.002, 0.0115


class TritonPythonModel:
    """Any FP32 [n, 3, 224, 224] to n times the same unit vector, FP32 [n, 512], after a while."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the lock, a file that the processes of all instances have in common."""
        path = f"{tempfile.gettempdir()}/inferswarm-planted-{args['model_name']}.lock"
        self.lock = os.open(path, os.O_CREAT | os.O_RDWR)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Sleep for each request, one instance after the other."""
        for _ in requests:
            time.sleep(FREE_S)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            time.sleep(LOCKED_S)
            fcntl.flock(self.lock, fcntl.LOCK_UN)
        return [unit_vectors(images_of(request)) for request in requests]
