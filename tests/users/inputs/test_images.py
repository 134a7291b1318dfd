"""The picture sets."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from users.inputs.images import ImageSetError, load_images, picture_paths, to_tensor


def test_default_set() -> None:
    images = load_images("")
    assert len(images) == 64
    assert len(set(images.jpegs)) == 64
    sizes = [len(jpeg) for jpeg in images.jpegs]
    assert min(sizes) >= 5_000
    assert max(sizes) <= 15_000
    assert all(Image.open(io.BytesIO(jpeg)).size == (224, 224) for jpeg in images.jpegs)
    assert images.tensors.shape == (64, 3, 224, 224)
    assert load_images("").sha256 == images.sha256


def test_tensor_and_jpeg_are_the_same_picture() -> None:
    images = load_images("")
    for index in (0, 17, 63):
        decoded = to_tensor(Image.open(io.BytesIO(images.jpegs[index])))
        np.testing.assert_array_equal(images.tensors[index], decoded)


def test_folder_of_jpeg_and_png(tmp_path: Path) -> None:
    Image.new("RGB", (300, 260), (200, 10, 10)).save(tmp_path / "b.jpg")
    Image.new("RGBA", (250, 250), (10, 200, 10, 128)).save(tmp_path / "a.PNG")
    (tmp_path / "notes.txt").write_text("not a picture, and not asked for")
    images = load_images(str(tmp_path))
    assert len(images) == 2
    assert images.jpegs[1] == (tmp_path / "b.jpg").read_bytes()
    assert Image.open(io.BytesIO(images.jpegs[0])).format == "JPEG"
    assert images.source == f"2 files of {tmp_path.name}/"


def test_a_large_folder_is_sampled_evenly(tmp_path: Path) -> None:
    for number in range(300):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{number:03}.png")
    taken = [int(path.stem) for path in picture_paths(tmp_path)]
    assert len(taken) == 256
    assert taken[:7] == [0, 1, 2, 3, 4, 5, 7]
    assert taken[-1] == 298


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "no .jpg, .jpeg or .png file in it"),
        ({"a.txt": b"hello"}, "no .jpg, .jpeg or .png file in it"),
        ({"a.jpg": b"hello"}, "is not a readable JPEG or PNG picture"),
        ({"a.png": b""}, "is not a readable JPEG or PNG picture"),
    ],
)
def test_bad_folders(tmp_path: Path, files: dict[str, bytes], sentence: str) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ImageSetError, match=sentence):
        load_images(str(tmp_path))


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ImageSetError, match="no such folder"):
        load_images(str(tmp_path / "none"))
