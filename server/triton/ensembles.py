"""What Triton's models take besides float32 tensors: the ensembles before a model, and their steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from server.spec import ROOT

FP32 = "fp32"
STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""By payload: the model that makes float32 pixels of it."""
PAYLOADS = (FP32, *STEPS)
FOLDER = ROOT / "triton_repo" / "payloads"
TENSORS = ROOT / "triton_repo" / "tensors.py"
TEMPLATE = "openclip_vit_b32"
"""The model that the ensembles are written for."""

Files = Mapping[str, bytes]
"""What files hold, by their paths in a model repository."""


def ensemble(model: str, payload: str) -> str:
    """The name of the ensemble that takes a payload for a model."""
    return f"{model}_{payload}"


def served(model: str, payloads: Iterable[str]) -> tuple[str, ...]:
    """The models that requests with these payloads name."""
    return tuple(model if payload == FP32 else ensemble(model, payload) for payload in payloads)


def payload_files(model: str, payloads: Iterable[str]) -> Files:
    """The ensembles before a model, and their steps; an ensemble's version folder is empty."""
    files: dict[str, bytes] = {}
    for payload in (payload for payload in payloads if payload != FP32):
        template = (FOLDER / payload / "config.pbtxt").read_text()
        files[f"{ensemble(model, payload)}/config.pbtxt"] = template.replace(TEMPLATE, model).encode()
        files |= model_files(FOLDER / STEPS[payload])
    return files


def model_files(folder: Path) -> Files:
    """A model of the Python backend as it lies in triton_repo, with what its model.py imports."""
    own = {f"{folder.name}/{name}": (folder / name).read_bytes() for name in ("config.pbtxt", "1/model.py")}
    return {**own, f"{folder.name}/1/{TENSORS.name}": TENSORS.read_bytes()}
