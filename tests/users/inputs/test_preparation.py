"""Each preset prepares pictures as its library does; and what a file may say instead."""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from users.inputs.preparation import CLIP, PRESETS, Preparation, preparation_of, prepared

SIZES = {"square": (224, 224), "wide": (640, 427), "tall": (301, 451), "tiny": (17, 40), "odd": (225, 333)}
RANDOM = np.random.default_rng(2)
Array = np.ndarray
NOISE = RANDOM.integers(0, 256, (300, 260, 3), dtype=np.uint8)


def made(
    picture: Image.Image, name: str, size: int = 224, dtype: str = "FP32", layout: str = "NCHW"
) -> Array:
    return prepared(picture, PRESETS[name], size, size, dtype, layout)


@pytest.mark.system
def test_equal_to_torchvision(tmp_path: Path) -> None:
    folder, out = tmp_path / "pictures", tmp_path / "reference.npz"
    folder.mkdir()
    for name, (width, height) in SIZES.items():
        pixels = RANDOM.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    script = Path(__file__).with_name("torchvision_reference.py")
    subprocess.run([sys.executable, script, folder, out], check=True, timeout=120)
    reference = np.load(out)
    assert len(reference.files) == 5 * len(SIZES)
    for key in reference.files:
        recipe, name = key.split()
        preset, size = recipe.split("-")
        found = made(Image.open(folder / f"{name}.png"), preset, int(size))
        np.testing.assert_allclose(found, reference[key], atol=1e-6, rtol=0, err_msg=key)


def test_caffe_by_hand() -> None:
    """Keras' `preprocess_input` in its mode `caffe`, on the square in the middle."""
    picture = Image.fromarray(RANDOM.integers(0, 256, (256, 256, 3), dtype=np.uint8))
    square = np.asarray(picture)[16:240, 16:240].astype(np.float32)
    expected = square[..., ::-1] - np.array([103.939, 116.779, 123.68], dtype=np.float32)
    np.testing.assert_array_equal(made(picture, "caffe", layout="NHWC"), expected)
    blue_first = made(picture, "caffe", dtype="UINT8", layout="NHWC")
    np.testing.assert_array_equal(blue_first, np.asarray(picture)[16:240, 16:240, ::-1])


def test_pixels_stay_as_they_are() -> None:
    picture = Image.fromarray(NOISE[:224, :224])
    for dtype, kind in (("UINT8", np.uint8), ("FP32", np.float32), ("FP16", np.float16)):
        found = made(picture, "pixels", dtype=dtype, layout="NHWC")
        assert found.dtype == kind
        np.testing.assert_array_equal(found, NOISE[:224, :224])


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_layouts_and_types_are_of_one_picture(name: str) -> None:
    picture = Image.fromarray(NOISE)
    first = made(picture, name)
    assert (first.shape, first.dtype) == ((3, 224, 224), np.float32)
    assert first.flags.c_contiguous
    last = made(picture, name, layout="NHWC")
    assert last.shape == (224, 224, 3)
    assert last.flags.c_contiguous
    np.testing.assert_array_equal(last.transpose(2, 0, 1), first)
    half = made(picture, name, dtype="FP16")
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, first.astype(np.float16))
    raw = made(picture, name, dtype="UINT8")
    preset = PRESETS[name]
    scaled = (raw.astype(np.float32) / np.float32(preset.divide)).reshape(3, -1)
    by_hand = (scaled.T - np.float32(preset.mean)) / np.float32(preset.deviation)
    np.testing.assert_allclose(by_hand.T.reshape(3, 224, 224), first, atol=1e-5)


def test_the_size_is_the_inputs() -> None:
    picture = Image.new("RGB", (800, 700), (255, 0, 0))
    for size in (64, 336, 384):
        assert {made(picture, name, size).shape for name in PRESETS} == {(3, size, size)}
    assert PRESETS["clip-336"] is PRESETS["clip"] is CLIP


@pytest.mark.parametrize(("size", "edge"), [(224, 256), (299, 342), (384, 439), (518, 592), (112, 128)])
def test_what_is_cropped_grows_with_the_size(size: int, edge: int) -> None:
    """A picture of `edge` is not resized, and loses as much on each side."""
    pixels = RANDOM.integers(0, 256, (edge, edge, 3), dtype=np.uint8)
    margin = round((edge - size) / 2)
    found = made(Image.fromarray(pixels), "dinov2", size, "UINT8", "NHWC")
    np.testing.assert_array_equal(found, pixels[margin : margin + size, margin : margin + size])


def test_an_input_that_is_no_square() -> None:
    """A picture twice as wide as high covers an input that is twice as high as wide by its height."""
    pixels = RANDOM.integers(0, 256, (256, 512, 3), dtype=np.uint8)
    found = prepared(Image.fromarray(pixels), PRESETS["pixels"], 256, 128, "UINT8", "NHWC")
    np.testing.assert_array_equal(found, pixels[:, 192:320])
    squashed = prepared(Image.new("RGB", (512, 256), (9, 8, 7)), PRESETS["siglip"], 256, 128, "UINT8", "NHWC")
    assert squashed.shape == (256, 128, 3)
    assert set(map(tuple, squashed.reshape(-1, 3).tolist())) == {(9, 8, 7)}


@pytest.mark.parametrize("dtype", ["INT8", "BF16", "FP64", ""])
def test_types_that_no_picture_has(dtype: str) -> None:
    with pytest.raises(ValueError, match="a picture is sent as FP32, FP16, UINT8, not as"):
        prepared(Image.new("RGB", (8, 8)), CLIP, 8, 8, dtype, "NCHW")


def test_too_small_to_cover_the_input() -> None:
    small = Preparation("mine", resize_to=256)
    with pytest.raises(ValueError, match="mine: resize_to 256 does not cover 384 pixels; give 384 or more, "):
        prepared(Image.new("RGB", (800, 800)), small, 384, 384, "FP32", "NCHW")


def test_presets_by_name() -> None:
    for name, preset in PRESETS.items():
        assert preparation_of(name) is preset
        assert Preparation.from_dict({**asdict(preset), "mean": list(preset.mean)}) == preset


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v2.toml"
    path.write_text('resize_to = 232\nfilter = "bilinear"\nmean = [0.5, 0, 1]\ndivide = 255\norder = "BGR"\n')
    found = preparation_of(str(path))
    assert found == Preparation("v2", resize_to=232, filter="bilinear", mean=(0.5, 0, 1), order="BGR")
    assert hash(found)
    path.write_text('name = "mine"\nresize = "squash"\ncrop_size = 224\ndeviation = [1, 2, 3.5]')
    assert preparation_of(str(path)) == Preparation("mine", "squash", crop_size=224, deviation=(1, 2, 3.5))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("crop = 224", "a preparation has no crop; it has name, resize, resize_to, crop_size"),
        ("mean = 0.5", "mean cannot be '0.5'; give three numbers, one for each channel"),
        ("mean = [0.5, 0.5]", "mean cannot be .* give three numbers"),
        ('mean = [0.5, 0.5, "0.5"]', "mean cannot be .* give three numbers"),
        ("mean = [0.5, 0.5, nan]", "mean cannot be .* give three numbers"),
        ("deviation = [1, 1, 0]", "deviation cannot be .* give three numbers above 0"),
        ("divide = 0", "divide cannot be '0'; give a number above 0, such as 255 or 1"),
        ("divide = true", "divide cannot be 'True'"),
        ("divide = inf", "divide cannot be 'inf'"),
        ("resize_to = -1", "resize_to cannot be '-1'; give pixels from 1 to 16384, or 0"),
        ("resize_to = 224.0", "resize_to cannot be '224.0'"),
        ("crop_size = 99999", "crop_size cannot be '99999'"),
        ('filter = "nearest"', 'filter cannot be \'nearest\'; give "bicubic" or "bilinear"'),
        ("resize = [1]", 'resize cannot be .* give "shorter" or "squash"'),
        ('order = "rgb"', 'order cannot be \'rgb\'; give "RGB" or "BGR"'),
        ('name = ""', "name cannot be ''; give a text"),
        ("mean = ", "is not readable as TOML"),
        ("\xff\xfe", "is not readable as TOML"),  # which is no UTF-8
        (f"mean = {'[' * 20_000}", "is not readable as TOML"),
        (f"# {'x' * 70_000}", "is not a preparation: it has more than 65,536 bytes"),
    ],
)
def test_bad_files(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(line.encode("latin-1"))
    with pytest.raises(ValueError, match=sentence) as caught:
        preparation_of(str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["CLIP", "none.toml", "", ".", "a\0b"])
def test_neither_preset_nor_file(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a file nor one of clip, clip-336, .* or a TOML file"):
        preparation_of(text)


def test_a_path_that_is_too_long() -> None:
    with pytest.raises(ValueError, match=r"is not readable \(File name too long\); fix it, or give a preset"):
        preparation_of("x" * 300)
