"""Files that would take long to decode for their size: each is refused, and what photographs hold is not."""

import base64
import io
import json
import struct
import zlib

import pytest
from PIL import Image, ImageFile

from server.errors import Refusal
from server.service.decode import MAX_SCANS, decode, prepare
from server.settings import Settings

PIXELS = Settings().max_pixels
SCANS = f"images[0] has more than {MAX_SCANS} scans: send it as a plain JPEG"
PIECES = "images[0] has far too many segments: send it as a plain JPEG"
DAMAGED = "images[0] is not a complete JPEG, PNG or WebP image"


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(data)) + data


def progressive(scans, side=64):
    """A grey JPEG whose every scan but the first says in a few bytes that nothing changes."""
    blocks = (side // 8) ** 2
    runs = blocks // (2**15 - 1) + 1
    # Code 0 stands for a run of 2^14 blocks, and 14 more bits for its rest.
    bits = ("0" + "1" * 14) * runs
    bits += "1" * (-len(bits) % 8)
    nothing = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\x00")
    made = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64))
    made += segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\x01\x11\x00")
    made += segment(0xC4, b"\x00" + bytes([1, *[0] * 15]) + b"\x00")
    made += segment(0xC4, b"\x10" + bytes([1, *[0] * 15]) + b"\xe0")
    made += segment(0xDA, b"\x01\x01\x00\x00\x00\x00") + bytes(blocks // 8)
    return made + (segment(0xDA, b"\x01\x01\x00\x01\x3f\x00") + nothing) * (scans - 1) + b"\xff\xd9"


PNG = saved(Image.new("RGB", (300, 300)), "PNG")
JPEG = saved(Image.new("RGB", (300, 300)), "JPEG")
PACKED = zlib.compress(b"\0" * 2**20)


def in_png(*chunks):
    return PNG[:33] + b"".join(chunks) + PNG[33:]


def in_jpeg(data):
    return JPEG[:2] + data + JPEG[2:]


BOMBS = {
    "scans": (progressive(MAX_SCANS + 1), 413, SCANS),
    "chunks": (in_png(chunk(b"aaAa") * 200_000), 413, PIECES),
    "chunks after the pixels": (PNG[:-12] + chunk(b"aaAa") * 200_000 + PNG[-12:], 413, PIECES),
    "empty pixels": (in_png(chunk(b"IDAT") * 200_000), 413, PIECES),
    "small texts": (in_png(chunk(b"tEXt", b"k\0") * 200_000), 413, PIECES),
    "packed texts": (in_png(*(chunk(b"zTXt", b"k%d\0\0" % i + PACKED) for i in range(64))), 400, DAMAGED),
    "one packed text": (in_png(chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(10**8)))), 400, DAMAGED),
    "a packed profile": (in_png(chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(10**8)))), 400, DAMAGED),
    "comments": (in_jpeg(segment(0xFE, b"") * 500_000), 413, PIECES),
    "segments": (in_jpeg(segment(0xE5, b"") * 500_000), 413, PIECES),
    "fill bytes": (in_jpeg(b"\xff" * 2_000_000), 413, PIECES),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name):
    data, status, sentence = BOMBS[name]
    text = base64.b64encode(data).decode()
    with pytest.raises(Refusal) as caught:
        decode(text, "images[0]", PIXELS)
    assert (caught.value.status, caught.value.detail) == (status, sentence)


@pytest.mark.parametrize(
    "data",
    [
        progressive(MAX_SCANS),
        saved(Image.effect_noise((2000, 1500), 60).convert("RGB"), "JPEG", progressive=True),
        saved(Image.effect_noise((1000, 900), 60), "PNG"),
        in_png(*(chunk(b"zTXt", b"k%d\0\0" % i + PACKED) for i in range(3))),
        in_jpeg(segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(60_000)) * 20),
    ],
)
def test_ordinary_files_are_far_from_the_limits(data):
    assert decode(base64.b64encode(data).decode(), "images[0]", PIXELS).size >= (64, 64)


def test_only_the_first_picture_of_an_animation_is_decoded():
    frames = [Image.new("RGB", (300, 260), (i, 9, 9)) for i in range(60)]
    for kind in ("WEBP", "PNG"):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
        image = decode(base64.b64encode(data).decode(), "images[0]", 300 * 260)
        assert image.getpixel((0, 0))[:3] == (0, 9, 9)


def test_half_a_file_is_never_filled_up():
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


def test_a_request_that_takes_too_long_to_decode_is_left():
    text = base64.b64encode(saved(Image.new("RGB", (600, 600)), "PNG")).decode()
    body = json.dumps({"images": [text] * 32}).encode()
    with pytest.raises(Refusal) as caught:
        prepare(body, Settings(max_decode_s=1e-6))
    assert (caught.value.status, caught.value.detail) == (
        413,
        "images[0] and later ones were not decoded: those before took more than 1e-06 s to decode, "
        "so send fewer or smaller ones per request",
    )
    assert len(prepare(body, Settings(max_decode_s=60)).pixels) == 32
