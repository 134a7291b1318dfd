"""open_clip's image towers in PyTorch: the same weights in every process, and the service's model."""

import functools
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from server.errors import SetUpError
from server.models.preprocess import MEAN, STD
from server.settings import Settings
from server.spec import DIM, FP16, FP32, IMAGE_SIZE, ModelSpec

DTYPES = {FP32: torch.float32, FP16: torch.float16}
PIXELS = (3, IMAGE_SIZE, IMAGE_SIZE)
COMPILED_FOR = (1, 2)
"""One image, for which PyTorch compiles separately, and several."""
WARM_CALLS = 4
"""The first compiles; the fastest of the others is the time of an inference."""


class ImageTower(torch.nn.Module):
    """The image half of a CLIP model: pixels [n, 3, 224, 224] to L2-normalised float32 [n, 512].

    Pixels are of its weights' dtype; lengths are taken in float32, whatever that is.
    """

    def __init__(self, visual: torch.nn.Module) -> None:
        super().__init__()
        self.visual = visual

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(self.visual(pixels).float(), dim=-1)


def load_tower(spec: ModelSpec) -> ImageTower:
    """Build the image tower on the CPU, ready to infer; SetUpError where spec names nothing loadable."""
    open_clip = import_open_clip()
    if spec.name not in open_clip.list_models():
        raise SetUpError(f"open_clip has no model {spec.name!r}: choose one with --model, like ViT-B-32.")
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
            f"{DIM} numbers: choose one with --model that does, like ViT-B-32 or ViT-B-16."
        )


class Compiled(NamedTuple):
    """What the first inference of so many images took a compiled model, and the least of those after it."""

    images: int
    first_ns: int
    next_ns: int


class ClipEmbedder:
    """The Embedder that computes: one image tower on one device, as it is or `compiled` by torch.compile."""

    dim = DIM
    weights_sha256 = ""

    def __init__(self, settings: Settings, compiled: bool = False) -> None:
        self._spec = settings.spec
        self._threads = settings.threads
        self._compiled = compiled
        self._dtype = DTYPES[settings.precision]
        self._tower: Callable[[torch.Tensor], torch.Tensor]
        self.model = self._spec.name
        self.weights = self._spec.weights
        self.precision = settings.precision
        self.device = choose_device(settings.device)
        self._max_batch = settings.max_batch
        self._pinned: torch.Tensor | None = None
        self.first_calls: list[Compiled] = []
        """Warm-up inferences of a compiled model: each of them compiles."""

    def load(self) -> None:
        """Make the model, move it to its device and infer once, or compile it for every number of images."""
        if self._threads:
            torch.set_num_threads(self._threads)
        # In float32 all of it: by itself PyTorch convolves in TF32 on GPUs that have it.
        torch.backends.cudnn.allow_tf32 = False
        tower = load_tower(self._spec)
        self.weights_sha256 = weights_sha256(tower)
        self._tower = tower.to(self.device, self._dtype)
        if self.device.startswith("cuda"):
            # A GPU copies from pinned memory by itself; from any other the CPU copies first.
            self._pinned = torch.empty(self._max_batch, *PIXELS, pin_memory=True)
        if self._compiled:
            self._compile()
        else:
            self._timed_ns(1)

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to L2-normalised float32 [n, 512]; returns when the device is done."""
        return np.asarray(self.compute([torch.from_numpy(pixels)]).numpy(), dtype=np.float32)

    def compute(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Several inputs, float32 [n, 3, 224, 224], to all their embeddings, float32 [N, 512], on the CPU.

        Inputs may be on the CPU or on the device. Returns when the device is done.
        """
        # No inference mode: to a compiled model, tensors made in it and outside of it are of two kinds.
        with torch.no_grad():
            return self._tower(self._together(inputs).to(self._dtype)).cpu()

    def _together(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """All inputs as one tensor on the device."""
        images = sum(map(len, inputs))
        if self._pinned is not None and images <= len(self._pinned) and all(one.is_cpu for one in inputs):
            # What was copied from it before has arrived: `compute` waits for the device.
            staged = torch.cat(list(inputs), out=self._pinned[:images])
            return staged.to(self.device, non_blocking=True)
        moved = [one.to(self.device) for one in inputs]
        return moved[0].contiguous() if len(moved) == 1 else torch.cat(moved)

    def _compile(self) -> None:
        """Compile for one image and for any number of them.

        From then on what would have to be compiled fails: no request that is measured can wait for it.
        """
        self._tower = torch.compile(self._tower, dynamic=True)
        for images in COMPILED_FOR:
            took_ns = [self._timed_ns(images) for _ in range(WARM_CALLS)]
            self.first_calls.append(Compiled(images, took_ns[0], min(took_ns[1:])))
        torch.compiler.set_stance("fail_on_recompile")

    def _timed_ns(self, images: int) -> int:
        began_ns = time.perf_counter_ns()
        self.compute([torch.zeros(images, *PIXELS)])
        return time.perf_counter_ns() - began_ns


def choose_device(name: str) -> str:
    """A device that is there: `auto` takes the first of CUDA, MPS and the CPU."""
    if name == "auto":
        mps = torch.backends.mps.is_available()
        return "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise SetUpError(f"INFERSWARM_DEVICE is {name}, but PyTorch finds no CUDA device: set cpu or auto.")
    return name
