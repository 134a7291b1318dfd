"""The model repositories of a Triton container on a GPU host: triton_repo/gpu and the exported model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from server.spec import ROOT
from server.triton.ensembles import PAYLOADS, model_files, payload_files
from server.triton.repository import NULL, with_parameters

MODELS = {"onnx": "openclip_vit_b32", "trt": "openclip_vit_b32_trt"}
"""The model of each server's repository; its endpoints begin with the server's name."""


def lay_out(onnx: Path, folder: Path, facts: dict[str, str]) -> None:
    """Make `folder`/onnx and `folder`/trt: a model, what takes JPEG and uint8 for it, and `null`.

    `facts` become parameters of the models: which weights they hold. What is there already is written over.
    """
    for server, model in MODELS.items():
        for name, data in repository_files(model, facts).items():
            path = folder / server / name
            # Triton wants a version folder of an ensemble, which has no files in it, too.
            (folder / server / Path(name).parts[0] / "1").mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _same_file(onnx, folder / server / model / "1" / "model.onnx")


def repository_files(model: str, facts: dict[str, str]) -> dict[str, bytes]:
    """What one repository holds besides the exported model, by path."""
    config = (ROOT / "triton_repo" / "gpu" / model / "config.pbtxt").read_text()
    return {
        f"{model}/config.pbtxt": with_parameters(config, facts).encode(),
        **payload_files(model, PAYLOADS),
        **model_files(ROOT / "triton_repo" / NULL / NULL),
    }


def _same_file(source: Path, target: Path) -> None:
    # A second name for the same 350 MB, where both are on one file system.
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
