"""open_clip's image towers in PyTorch: the same weights in every process, and the service's model."""

import functools
import hashlib
import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from server.errors import SetUpError
from server.models.preprocess import MEAN, STD
from server.settings import Settings
from server.spec import DIM, IMAGE_SIZE, ModelSpec


class ImageTower(torch.nn.Module):
    """The image half of a CLIP model: float32 [n, 3, 224, 224] to L2-normalised float32 [n, 512]."""

    def __init__(self, visual: torch.nn.Module) -> None:
        super().__init__()
        self.visual = visual

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(self.visual(pixels), dim=-1)


def load_tower(spec: ModelSpec) -> ImageTower:
    """Build the image tower on the CPU, ready to infer; SetUpError where spec names nothing loadable."""
    open_clip = import_open_clip()
    if spec.name not in open_clip.list_models():
        raise SetUpError(f"open_clip has no model {spec.name!r}: give --model one of its own, like ViT-B-32.")
    known = open_clip.list_pretrained_tags_by_model(spec.name)
    if spec.pretrained and spec.pretrained not in known and not Path(spec.pretrained).is_file():
        raise SetUpError(
            f"--pretrained {spec.pretrained} is neither a file nor a tag of {spec.name}: {', '.join(known)}."
        )
    visual = _create(open_clip, spec).visual
    _check_contract(spec, visual)
    return ImageTower(visual).eval()


def weights_sha256(tower: ImageTower) -> str:
    """One hash of all weights of a tower, in the order of their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tower.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().flatten().numpy().data)
    return digest.hexdigest()


def import_open_clip() -> Any:
    """The open_clip module, importable also where torchvision's wheel does not fit torch's."""
    _complete_torchvision()
    import open_clip

    return open_clip


@functools.cache
def _complete_torchvision() -> Any:
    # Beside a CPU-only torch, torchvision's CUDA wheel cannot load its operators, and importing it then
    # fails on the two it only wants to describe. The library lives as long as its schemas are wanted.
    spec = find_spec("torchvision")
    extension = Path(spec.origin).with_name("_C.so") if spec and spec.origin else None
    if extension is None or not extension.exists():
        return None
    try:
        torch.ops.load_library(str(extension))  # type: ignore[no-untyped-call]
    except OSError:
        library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None


def _create(open_clip: Any, spec: ModelSpec) -> Any:
    tag = open_clip.get_pretrained_cfg(spec.name, spec.pretrained) or {}
    # open_clip warns through the root logger that random weights are random, which we asked for.
    logging.disable(logging.WARNING)
    try:
        torch.manual_seed(spec.seed)
        return open_clip.create_model(
            spec.name, pretrained=spec.pretrained or None, force_quick_gelu=tag.get("quick_gelu", False)
        )
    except Exception as error:
        text = " ".join(str(error).split())
        raise SetUpError(f"{spec.name} with weights {spec.weights} cannot be loaded: {text}") from error
    finally:
        logging.disable(logging.NOTSET)


def _check_contract(spec: ModelSpec, visual: Any) -> None:
    found = (tuple(visual.image_size), visual.output_dim, tuple(visual.image_mean), tuple(visual.image_std))
    if found != ((IMAGE_SIZE, IMAGE_SIZE), DIM, MEAN, STD):
        raise SetUpError(
            f"{spec.name} does not turn {IMAGE_SIZE} x {IMAGE_SIZE} CLIP-normalised images into "
            f"{DIM} numbers: give --model one that does, like ViT-B-32 or ViT-B-16."
        )


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

    def load(self) -> None:
        """Make the model, move it to its device and infer once."""
        if self._threads:
            torch.set_num_threads(self._threads)
        tower = load_tower(self._spec)
        self.weights_sha256 = weights_sha256(tower)
        self._tower: ImageTower = tower.to(self.device)
        self.embed(np.zeros((1, 3, IMAGE_SIZE, IMAGE_SIZE), np.float32))

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to L2-normalised float32 [n, 512]; returns when the device is done."""
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
