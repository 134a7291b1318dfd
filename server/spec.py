"""Which model and which weights: the one answer every backend shares. Imports nothing heavy."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKOUT = (ROOT / "requirements.txt").exists()
"""Whether ROOT is a checkout, and no installed package's folder."""
IMAGE_SIZE = 224
DIM = 512
FP32, FP16 = "fp32", "fp16"
PRECISIONS = (FP32, FP16)
"""The types that PyTorch's models compute in; pixels and embeddings are float32 in any case."""


@dataclass(frozen=True)
class ModelSpec:
    """An open_clip architecture with real weights (a tag or a checkpoint's path) or seeded random ones."""

    name: str = "ViT-B-32"
    pretrained: str = ""
    seed: int = 0

    @property
    def weights(self) -> str:
        """The weights' name for people: `random (seed 0)`, `laion2b_s34b_b79k`, `my_checkpoint.pt`."""
        if not self.pretrained:
            return f"random (seed {self.seed})"
        return Path(self.pretrained).name

    @property
    def slug(self) -> str:
        """The model and its weights as a file name: `ViT-B-32-random-seed-0`."""
        return re.sub(r"[^\w.]+", "-", f"{self.name}-{self.weights}").strip("-")

    def arguments(self) -> list[str]:
        """The command-line options that say the same again."""
        options = ["--model", self.name, "--seed", str(self.seed)]
        return options + (["--pretrained", self.pretrained] if self.pretrained else [])


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add `--model`, `--pretrained` and `--seed`."""
    default = ModelSpec()
    parser.add_argument("--model", default=default.name, help="open_clip architecture (default: %(default)s)")
    parser.add_argument(
        "--pretrained",
        default=default.pretrained,
        metavar="TAG|PATH",
        help="open_clip tag or checkpoint file (default: random weights, which need no network)",
    )
    parser.add_argument(
        "--seed", type=int, default=default.seed, help="seed of random weights (default: %(default)s)"
    )


def model_of(options: argparse.Namespace) -> ModelSpec:
    """The ModelSpec that the options of `add_model_options` describe."""
    checkpoint = Path(options.pretrained)
    # Absolute, since our other processes run in another folder.
    pretrained = str(checkpoint.resolve()) if checkpoint.is_file() else options.pretrained
    return ModelSpec(options.model, pretrained, options.seed)
