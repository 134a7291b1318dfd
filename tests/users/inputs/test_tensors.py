"""The client's tensors are those that open_clip makes of the same pictures."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.users.inputs.test_preparation import SIZES
from users.inputs.preparation import CLIP, prepared

PICTURES = {name: ("RGB", size) for name, size in SIZES.items()}
PICTURES |= {"grey": ("L", (512, 300)), "alpha": ("RGBA", (320, 240))}


def to_tensor(image: Image.Image) -> np.ndarray:
    return prepared(image, CLIP, 224, 224, "FP32", "NCHW")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(1)
    for name, (mode, (width, height)) in PICTURES.items():
        channels = len(Image.new(mode, (1, 1)).getbands())
        pixels = random.integers(0, 256, (height, width, channels), dtype=np.uint8).squeeze()
        Image.fromarray(pixels).save(made / f"{name}.png")
    return made


@pytest.mark.system
def test_equal_to_open_clip(folder: Path, tmp_path: Path) -> None:
    script = Path(__file__).with_name("open_clip_reference.py")
    out = tmp_path / "reference.npz"
    subprocess.run([sys.executable, script, folder, out], check=True, timeout=120)
    reference = np.load(out)
    assert set(reference.files) == set(PICTURES)
    for path in folder.iterdir():
        np.testing.assert_allclose(to_tensor(Image.open(path)), reference[path.stem], atol=1e-6, rtol=0)


def test_a_grey_picture_by_hand() -> None:
    tensor = to_tensor(Image.new("RGB", (224, 224), (128, 128, 128)))
    expected = (128 / 255 - 0.48145466) / 0.26862954
    assert tensor[0] == pytest.approx(np.full((224, 224), expected), abs=1e-6)
