"""Prepare the pictures of a folder by the recipes that models' cards and papers state, with torchvision.

A process of its own, since it imports torch: python torchvision_reference.py FOLDER OUT.npz
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from server.models.clip import import_open_clip

import_open_clip()  # it fixes torchvision where torch is of another build

from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Normalize, Resize, ToTensor  # noqa: E402

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
IMAGENET = Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
BICUBIC, BILINEAR = InterpolationMode.BICUBIC, InterpolationMode.BILINEAR
RECIPES = {
    "siglip-224": [Resize((224, 224), BICUBIC), ToTensor(), HALF],
    "siglip-384": [Resize((384, 384), BICUBIC), ToTensor(), HALF],
    "dinov2-224": [Resize(256, BICUBIC), CenterCrop(224), ToTensor(), IMAGENET],
    "imagenet-224": [Resize(256, BILINEAR), CenterCrop(224), ToTensor(), IMAGENET],
    "imagenet-299": [Resize(342, BILINEAR), CenterCrop(299), ToTensor(), IMAGENET],
}
folder, out = Path(sys.argv[1]), sys.argv[2]
pictures = {path.stem: Image.open(path).convert("RGB") for path in sorted(folder.iterdir())}
np.savez(
    out,
    **{
        f"{recipe} {name}": Compose(steps)(picture).numpy()
        for recipe, steps in RECIPES.items()
        for name, picture in pictures.items()
    },
)
