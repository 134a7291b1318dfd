import numpy as np
import pytest
from PIL import Image

from server.models.clip import import_open_clip
from server.models.preprocess import preprocess, resized

pytestmark = pytest.mark.system

SIZES = [(640, 427), (427, 640), (224, 224), (225, 224), (1001, 333), (32, 57)]


@pytest.fixture(scope="module")
def transform():
    """open_clip's own transform for inference."""
    return import_open_clip().transform.image_transform(224, is_train=False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "RGBA", "P"])
def test_pixels_equal_open_clips(transform, mode, size):
    channels = {"L": 1, "P": 1, "RGB": 3}.get(mode, 4)
    random = np.random.default_rng(size[0])
    noise = random.integers(0, 256, (size[1], size[0], channels), dtype=np.uint8)
    image = Image.frombytes(mode, size, noise.tobytes())
    if mode == "P":
        image.putpalette(bytes(range(256)) * 3)
    expected = transform(image).numpy()
    found = preprocess(image)
    assert found.shape == (3, 224, 224)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= 1e-6


def test_the_shorter_side_becomes_224_and_the_longer_is_cut():
    assert resized((640, 427)) == (335, 224)
    assert resized((427, 640)) == (224, 335)
    assert resized((1, 1000)) == (224, 224_000)
