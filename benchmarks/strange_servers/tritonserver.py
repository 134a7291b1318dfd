"""The real tritonserver with models that are not ours: other names, types, layouts, forms of a picture."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.strange_servers.environments import FOLDER
from benchmarks.strange_servers.running import work_folder
from benchmarks.strange_servers.servers import PROGRAMS
from benchmarks.tritonserver import TritonAddresses, tritonserver
from server.spec import FP32
from server.triton.repository import TENSORS, make_repository

OWN = FOLDER / "triton"
MODELS = ("siglip_fp16", "clip_jpeg", "clip_padded", "clip_unbatched")
BESIDE = (TENSORS, PROGRAMS / "clip_onnx.py")
"""What every model of its own imports."""
STEPS = ("jpeg",)
"""The payload of ours whose steps `clip_jpeg` goes through, too."""


@contextmanager
def triton(onnx: Path) -> Iterator[TritonAddresses]:
    """A tritonserver with MODELS, once it is ready. Raises SetUpError."""
    environ = {**os.environ, "CLIP_ONNX": str(onnx)}
    with (
        work_folder() as folder,
        tritonserver(folder, lambda: lay_out(folder / "models", onnx), environ=environ) as addresses,
    ):
        yield addresses


def lay_out(folder: Path, onnx: Path) -> Path:
    """A model repository: ours of the exported model with its JPEG decoder, and MODELS besides."""
    ours = make_repository("onnx", 0, 1, {"onnx_path": str(onnx)}, (FP32, *STEPS))
    shutil.copytree(ours, folder)
    for name in MODELS:
        shutil.copytree(OWN / name, folder / name)
        (folder / name / "1").mkdir(exist_ok=True)
        if (folder / name / "1" / "model.py").exists():
            for path in BESIDE:
                shutil.copy2(path, folder / name / "1")
    return folder
