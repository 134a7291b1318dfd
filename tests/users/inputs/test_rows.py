"""What goes into an input, role by role, and how much of it is kept."""

import io
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from users.contract import Contract, Input, Role
from users.inputs import images as images_module
from users.inputs.images import ImageSet
from users.inputs.pictures import encode
from users.inputs.preparation import CLIP, PRESETS, prepared
from users.inputs.rows import random_row, row_bytes

PICTURES = np.random.default_rng(5).integers(0, 256, (5, 70, 90, 3), dtype=np.uint8)
JPEGS = tuple(encode(Image.fromarray(picture), 90) for picture in PICTURES)
SQUARE = Input("input", "FP32", (3, 32, 32), "picture", "NCHW")
ROW = 3 * 32 * 32 * 4
FILE = Input("input", "BYTES", (1,), "jpeg")


def image_set(pool_bytes: int = 10 * ROW, texts: Sequence[str] = "a") -> ImageSet:
    return ImageSet(JPEGS, "test", tuple(texts), pool_bytes=pool_bytes)


@pytest.mark.parametrize("preset", ["clip", "siglip", "caffe"])
@pytest.mark.parametrize(
    ("dtype", "shape", "layout"),
    [("FP32", (3, 32, 48), "NCHW"), ("FP16", (32, 48, 3), "NHWC"), ("UINT8", (32, 48, 3), "NHWC")],
)
def test_pictures(preset: str, dtype: str, shape: tuple[int, ...], layout: str) -> None:
    one = Input("pixel_values", dtype, shape, "picture", layout)
    contract = Contract((one,), PRESETS[preset])
    found = image_set().tensor(one, contract, (4, 0, 4))
    assert found.shape == (3, *shape)
    for row, index in zip(found, (4, 0, 4), strict=True):
        picture = Image.open(io.BytesIO(JPEGS[index]))
        expected = prepared(picture, PRESETS[preset], 32, 48, dtype, layout)
        assert row.dtype == expected.dtype
        np.testing.assert_array_equal(row, expected)


def test_what_is_taken_is_a_copy() -> None:
    images, contract = image_set(), Contract((SQUARE,))
    first = images.tensor(SQUARE, contract, (1,))
    expected = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(images.tensor(SQUARE, contract, (1,)), expected)


WRONG = [((3, -1, -1), "NCHW"), ((3, 32), "NCHW"), ((3, 32, 32), "NHWC"), ((32, 32, 3), "")]


@pytest.mark.parametrize(("shape", "layout"), WRONG)
def test_pictures_that_cannot_be_made(shape: tuple[int, ...], layout: str) -> None:
    one = Input("x", "FP32", shape, "picture", layout)
    with pytest.raises(ValueError, match=r'x: a picture has 3 channels and a size.* give shape = { x = "B,'):
        image_set().tensor(one, Contract((one,)), (0,))


@pytest.mark.parametrize("shape", [(1,), (), (-1,)])
def test_files_and_texts_as_bytes(shape: tuple[int, ...]) -> None:
    images = ImageSet((b"", b"abc"), "test", ("eins", "für zwei", "drei"))
    file, text = Input("f", "BYTES", shape, "jpeg"), Input("t", "BYTES", shape, "text")
    sent = {file: ((0, 1, 0), [b"", b"abc", b""]), text: ((1, 2), ["für zwei".encode(), b"drei"])}
    for one, (indices, expected) in sent.items():
        found = images.tensor(one, Contract((one,)), indices)
        assert (found.dtype, found.shape) == (np.object_, (len(indices), *[1] * len(shape)))
        assert found.ravel().tolist() == expected


def test_files_of_one_length_are_no_matrix() -> None:
    images = ImageSet((b"abc", b"def"), "test")
    assert images.tensor(FILE, Contract((FILE,)), (1, 0)).tolist() == [[b"def"], [b"abc"]]


def test_files_as_numbers_are_padded_to_the_longest_of_the_request() -> None:
    images = ImageSet((b"\1\2", b"\3\4\5\6", b"\7"), "test")
    one = Input("DALI", "UINT8", (-1,), "jpeg")
    found = images.tensor(one, Contract((one,)), (2, 0))
    assert found.dtype == np.uint8
    assert found.tolist() == [[7, 0], [1, 2]]
    assert images.tensor(one, Contract((one,)), (1, 2)).tolist() == [[3, 4, 5, 6], [7, 0, 0, 0]]


@pytest.mark.parametrize(
    ("role", "dtype", "shape", "sentence"),
    [
        ("jpeg", "BYTES", (2,), r"a jpeg is sent as BYTES of shape \[1\], or UINT8 .*, not as BYTES \[2\]"),
        ("jpeg", "FP32", (1,), r"a jpeg is sent as BYTES .* not as FP32 \[1\]"),
        ("jpeg", "UINT8", (9,), r"a jpeg of UINT8 has the shape \[-1\], not \[9\]"),
        ("text", "UINT8", (-1,), r"a text is sent as BYTES of shape \[1\], not as UINT8 \[-1\]"),
        ("random", "BF16", (4,), "cannot make values of type BF16"),
    ],
)
def test_inputs_of_other_forms(role: str, dtype: str, shape: tuple[int, ...], sentence: str) -> None:
    one = Input("x", dtype, shape, role)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^input x: {sentence}"):
        image_set().tensor(one, Contract((one,)), (0,))


@pytest.mark.parametrize(
    ("dtype", "most", "below"),
    [("UINT8", 0, 256), ("INT8", 0, 128), ("INT32", 10, 10), ("UINT16", 99_999, 65_536), ("BOOL", 0, 2)],
)
def test_random_integers(dtype: str, most: int, below: int) -> None:
    row = random_row(Input("x", dtype, (40, 500), "random", most=most), 3)
    assert row.shape == (40, 500)
    assert row.dtype == np.dtype(dtype.lower())
    assert row.min() == 0
    assert row.max() == pytest.approx(below - 1, rel=0.01, abs=0)


@pytest.mark.parametrize("bits", ["16", "32", "64"])
def test_random_floats(bits: str) -> None:
    row = random_row(Input("x", f"FP{bits}", (-1, 100_000), "random"), 0)
    assert (row.shape, row.dtype) == ((1, 100_000), f"float{bits}")
    assert 0 <= row.min() < 0.001
    assert 0.999 < row.max() < 1
    assert row.mean(dtype=float) == pytest.approx(0.5, abs=0.01)


def test_random_words() -> None:
    row = random_row(Input("x", "BYTES", (20, 2), "random"), 0)
    assert (row.shape, row.dtype) == ((20, 2), np.object_)
    assert all(word.isalpha() and word.islower() and 3 <= len(word) <= 9 for word in row.ravel())
    assert len(set(row.ravel())) > 30


def test_an_item_has_the_same_numbers_in_each_process() -> None:
    one, other = Input("x", "FP32", (3,), "random"), Input("y", "FP32", (3,), "random")
    contract = Contract((one, other))
    imports = "from users.contract import *; from users.inputs.rows import random_row"
    code = f"{imports}; print(random_row(Input('x', 'FP32', (3,), 'random'), 2).tolist())"
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = image_set().tensor(one, contract, (2, 1))
    assert str(found[0].tolist()) == elsewhere.stdout.strip()
    assert found[0].tolist() != found[1].tolist()
    assert found[0].tolist() != image_set().tensor(other, contract, (2,))[0].tolist()


def test_only_what_is_asked_for_is_made() -> None:
    images, contract = image_set(), Contract((SQUARE,))
    assert images._pool.nbytes == 0
    images.tensor(SQUARE, contract, (1, 3, 1))
    assert images._pool.nbytes == 2 * ROW
    images.tensor(FILE, Contract((FILE,)), (0,))
    assert images._pool.nbytes == 2 * ROW
    images.prepare(contract)
    assert images._pool.nbytes == 5 * ROW


def test_rows_are_made_once_for_endpoints_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = images_module.opened
    monkeypatch.setattr(images_module, "opened", lambda jpeg: opened.append(jpeg) or real(jpeg))
    images, other = image_set(), Input("pixel_values", "FP32", (3, 32, 32), "picture", "NCHW")
    for one in (SQUARE, other, SQUARE):
        images.prepare(Contract((one,), output=one.name))
        images.tensor(one, Contract((one,)), (0, 4))
    assert opened == [*JPEGS]
    images.tensor(SQUARE, Contract((SQUARE,), PRESETS["siglip"]), (2,))
    assert opened == [*JPEGS, JPEGS[2]]


def test_the_least_recently_used_goes() -> None:
    images = image_set(7 * ROW)
    contracts = [Contract((SQUARE,), PRESETS[name]) for name in ("clip", "siglip", "caffe")]
    first, second, third = contracts
    for contract in (first, second):
        images.tensor(SQUARE, contract, (0, 1, 2))
    images.tensor(SQUARE, first, (0,))
    assert images._pool.nbytes == 6 * ROW
    images.tensor(SQUARE, third, (0, 1))
    assert images._pool.nbytes == 5 * ROW
    expected = prepared(Image.open(io.BytesIO(JPEGS[1])), PRESETS["siglip"], 32, 32, "FP32", "NCHW")
    np.testing.assert_array_equal(images.tensor(SQUARE, second, (1,))[0], expected)
    assert images._pool.nbytes == 6 * ROW


def test_as_many_pictures_as_fit() -> None:
    contract = Contract((SQUARE,))
    counts = [image_set(most).count(contract) for most in (6 * ROW, 5 * ROW, 5 * ROW - 1, ROW, 1)]
    assert counts == [5, 5, 4, 1, 1]
    images = image_set(3 * ROW)
    images.prepare(contract)
    assert images._pool.nbytes == 3 * ROW
    assert images.tensor(SQUARE, contract, (2,)).shape == (1, 3, 32, 32)
    with pytest.raises(IndexError):
        images.tensor(SQUARE, contract, (3,))


def test_inputs_share_the_bound() -> None:
    mask = Input("mask", "UINT8", (ROW,), "random")
    assert image_set(4 * ROW).count(Contract((SQUARE, mask))) == 2
    assert image_set(4 * ROW).count(Contract((SQUARE, SQUARE))) == 4
    sizes = [len(jpeg) for jpeg in JPEGS]
    assert image_set(sum(sizes[:3])).count(Contract((FILE,))) == 3
    assert image_set(sum(sizes[:3])).count(Contract()) == 3
    assert image_set(sum(sizes[:3]) - 1).count(Contract((FILE,))) == 2
    assert image_set(2 * ROW + sum(sizes[:2])).count(Contract((SQUARE, FILE))) == 2


def test_contracts_of_texts_count_texts() -> None:
    text, ids = Input("t", "BYTES", (1,), "text"), Input("i", "INT64", (77,), "ids")
    images, both = image_set(texts="abcdefg"), Contract((ids, SQUARE))
    assert [images.count(of) for of in (Contract((text,)), Contract((ids,)), both)] == [7, 7, 5]
    assert image_set(3, "abcdefg").count(Contract((text,))) == 3
    assert images.tensor(ids, both, (4,)).shape == (1, 77)
    fewer = image_set(texts="ab")
    assert fewer.tensor(text, Contract((text, SQUARE)), (1, 4)).tolist() == [[b"b"], [b"a"]]


def test_bytes_of_a_row() -> None:
    assert row_bytes(SQUARE) == ROW
    assert row_bytes(Input("x", "FP16", (384, 384, 3), "picture", "NHWC")) == 884_736
    assert row_bytes(Input("x", "INT64", (-1, 77), "random")) == 616
    assert Contract().preparation == CLIP


@pytest.mark.parametrize(("role", "value"), [("ones", 1), ("zeros", 0)])
@pytest.mark.parametrize("dtype", ["INT64", "BOOL", "UINT8"])
def test_what_goes_beside_token_ids_is_all_alike(role: Role, value: int, dtype: str) -> None:
    beside = Input("attention_mask", dtype, (4,), role)
    contract = Contract((Input("input_ids", "INT64", (4,), "ids"), beside))
    made = ImageSet((), "test", texts=("a", "b", "c")).tensor(beside, contract, (2, 0))
    assert made.tolist() == [[value] * 4] * 2
