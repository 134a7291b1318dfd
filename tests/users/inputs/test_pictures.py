"""What becomes of pictures of every kind: their own bytes, the right pixels, or a refusal by name."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from users.inputs.images import ImageSet, load_images, opened
from users.inputs.pictures import ImageSetError, oddity
from users.inputs.preparation import CLIP, prepared

RAMP = np.linspace(0, 65_535, 256).round().astype(np.uint16)
GREY16 = np.tile(RAMP, (64, 1))
"""From black to white in 16 bits, as wide as there are 8-bit greys."""
NEAR = 3
"""JPEG's own error, in greys."""
GREYS, COLOURS = 0, 2
"""Of PNG files: what their samples are of."""
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def saved(folder: Path, name: str, image: Image.Image, kind: str = "PNG", **more: Any) -> bytes:
    """The bytes of a file in a folder."""
    image.save(folder / name, kind, **more)
    return (folder / name).read_bytes()


def pixels_of(folder: Path) -> Any:
    """The pixels of the only picture that is sent of a folder: [height, width, 3]."""
    (jpeg,) = load_images(str(folder)).jpegs
    assert opened(jpeg).mode == "RGB"
    return np.asarray(opened(jpeg)).astype(int)


def ramp(mode: str) -> Image.Image:
    """The same ramp in 8 bits, in another mode."""
    return Image.fromarray(np.tile(np.arange(256, dtype=np.uint8), (64, 1))).convert(mode)


def test_16_bits_of_grey_are_scaled(tmp_path: Path) -> None:
    assert opened(saved(tmp_path, "a.png", Image.fromarray(GREY16))).mode.startswith("I")
    assert np.abs(pixels_of(tmp_path)[32] - np.arange(256)[:, None]).max() <= NEAR


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA"])
def test_other_modes_have_the_same_pixels(tmp_path: Path, mode: str) -> None:
    image = ramp(mode)
    saved(tmp_path, "a.png", image)
    assert np.abs(pixels_of(tmp_path) - np.asarray(image.convert("RGB"))).mean() <= NEAR


def with_alpha(alpha: int) -> Image.Image:
    """Red with so much of it to be seen."""
    return Image.new("RGBA", (64, 64), (255, 0, 0, alpha))


def test_what_is_transparent_stands_on_white(tmp_path: Path) -> None:
    hidden = Image.new("P", (64, 64), 7)
    hidden.putpalette([9, 200, 30] * 256)
    grey = Image.new("L", (64, 64), 40)
    cases = [
        (with_alpha(255), {}, (255, 0, 0)),
        (with_alpha(0), {}, (255, 255, 255)),
        (with_alpha(128), {}, (255, 127, 127)),
        (with_alpha(128).convert("LA"), {}, None),
        (hidden, {"transparency": 7}, (255, 255, 255)),
        (hidden, {"transparency": 8}, (9, 200, 30)),
        (grey, {"transparency": 40}, (255, 255, 255)),
        (Image.new("RGB", (64, 64), (1, 2, 3)), {"transparency": (1, 2, 3)}, (255, 255, 255)),
    ]
    for image, more, colour in cases:
        saved(tmp_path, "a.png", image, **more)
        found = pixels_of(tmp_path)[32, 32]
        grey_on_white = round(76 * 128 / 255 + 255 * 127 / 255)
        assert np.abs(found - np.array(colour or (grey_on_white,) * 3)).max() <= NEAR


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize(
    ("bits", "colours", "row", "key"),
    [
        (2, GREYS, b"\xaa" * 16, (2,)),
        (4, GREYS, b"\xaa" * 32, (10,)),
        (16, GREYS, b"\xaa\xaa" * 64, (0xAAAA,)),
        (16, COLOURS, b"\xaa\xaa\0\0\0\0" * 64, (0xAAAA, 0, 0)),
    ],
)
def test_a_transparent_colour_that_pillow_does_not_find_is_refused(
    tmp_path: Path, bits: int, colours: int, row: bytes, key: tuple[int, ...]
) -> None:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, bits, colours, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress((b"\0" + row) * 64)) + chunk(b"IEND", b"")
    for transparent in (b"", chunk(b"tRNS", struct.pack(f">{len(key)}H", *key))):
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + transparent + pixels)
        if not transparent:
            assert abs(pixels_of(tmp_path)[32, 32, 0] - 0xAA) <= NEAR
            continue
        with pytest.raises(ImageSetError, match=f"a transparent colour of {bits} bits"):
            load_images(str(tmp_path))


def frames(kind: str) -> dict[str, Any]:
    return {"kind": kind, "save_all": True, "append_images": [ramp("RGB").rotate(180)]}


@pytest.mark.parametrize(
    ("image", "more", "said"),
    [
        (ramp("RGB"), frames("PNG"), "has 2 frames"),
        (ramp("RGB"), frames("GIF"), "has 2 frames"),
        (ramp("RGB"), frames("WEBP"), "has 2 frames"),
        (ramp("RGB"), frames("TIFF"), "has 2 frames"),
        (ramp("F"), {"kind": "TIFF"}, "has colours of the kind F"),
        (ramp("I"), {"kind": "TIFF"}, "has colours of the kind I"),
        (ramp("RGB").convert("CMYK"), {"kind": "TIFF"}, "has colours of the kind CMYK"),
        (ramp("RGB").convert("LAB"), {"kind": "TIFF"}, "has colours of the kind LAB"),
        (Image.fromarray(GREY16), {"transparency": 7}, "has a transparent colour of 16 bits"),
        (Image.fromarray(GREY16), {"transparency": 0}, "has a transparent colour of 16 bits"),
    ],
)
def test_what_is_not_one_certain_picture_is_refused_by_name(
    tmp_path: Path, image: Image.Image, more: dict[str, Any], said: str
) -> None:
    saved(tmp_path, "odd.png", image, **more)
    with pytest.raises(ImageSetError) as caught:
        load_images(str(tmp_path))
    assert f"odd.png {said}" in str(caught.value)


def mpo(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "MPO", save_all=True, append_images=[image.rotate(180)])
    return buffer.getvalue()


def jpeg(image: Image.Image, **more: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **more)
    return buffer.getvalue()


def turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return jpeg(ramp("RGB"), exif=exif)


JPEGS = {
    "plain": (jpeg(ramp("RGB")), ""),
    "progressive": (jpeg(ramp("RGB"), progressive=True), ""),
    "grey": (jpeg(ramp("L")), ""),
    "profile": (jpeg(ramp("RGB"), icc_profile=SRGB), ""),
    "several": (mpo(ramp("RGB")), ""),
    "cmyk": (jpeg(ramp("CMYK")), "has CMYK colours"),
    "upright": (turned(1), ""),
    "not turned by any reader": (turned(0), ""),
    "turned": (turned(6), "is to be turned, as its EXIF data say"),
}


@pytest.mark.parametrize("name", JPEGS)
def test_a_jpeg_file_travels_as_it_is(tmp_path: Path, name: str) -> None:
    data, said = JPEGS[name]
    (tmp_path / "a.jpg").write_bytes(data)
    images = load_images(str(tmp_path))
    assert images.jpegs == (data,)
    assert oddity(data) == said
    assert images.odd() == (0 if said else -1)
    # Prepared here it is what our servers read: not turned, and by Pillow's own conversion.
    expected = prepared(Image.open(io.BytesIO(data)).convert("RGB"), CLIP, 64, 64, "UINT8", "NHWC")
    found = prepared(opened(data), CLIP, 64, 64, "UINT8", "NHWC").astype(int)
    assert np.abs(found - expected).max() <= (NEAR if name == "cmyk" else 0)


def test_other_files_are_turned_and_keep_their_profile(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    saved(tmp_path, "a.png", ramp("RGB"), exif=exif, icc_profile=SRGB)
    (data,) = load_images(str(tmp_path)).jpegs
    assert opened(data).size == (64, 256)
    assert opened(data).info["icc_profile"] == SRGB
    assert oddity(data) == ""


def test_where_the_first_odd_picture_is() -> None:
    plain, odd = JPEGS["plain"][0], JPEGS["turned"][0]
    assert ImageSet((plain, odd, odd), "").odd() == 1
    assert ImageSet((plain, plain), "").odd() == -1


def test_what_of_a_folder_is_left_out_is_counted(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.JPEG", "c.jfif", "d.jpe"):
        (tmp_path / name).write_bytes(JPEGS["plain"][0])
    for name in ("e.webp", "f.WEBP", "g.txt", "noteslonger.abcdefgh", "h", ".hidden"):
        (tmp_path / name).write_text("no")
    (tmp_path / "more").mkdir()
    size = len(JPEGS["plain"][0])
    assert load_images(str(tmp_path)).left_out == "1 .txt, 2 .webp, 1 folder, 2 of other kinds"
    images = load_images(str(tmp_path), pool_bytes=2 * size)
    assert images.left_out == "1 .txt, 2 .webp, 2 beyond --pool-mb, 1 folder, 2 of other kinds"
    assert images.left_out in images.source
    assert load_images("").left_out == ""
