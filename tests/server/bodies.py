"""Bodies that nobody should send: shapes of JSON, kinds of base64, damaged image files, and plain bytes."""

import base64
import io
import json

from hypothesis import strategies as st
from PIL import Image

SHAPE = (60, 48)


def _saved(kind, mode="RGB", **options):
    buffer = io.BytesIO()
    Image.effect_noise(SHAPE, 60).convert("RGB").convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def _exif():
    made = Image.Exif()
    made[274], made[306] = 6, "2026:01:01 00:00:00"
    return made


def _frames():
    return [Image.new("RGB", SHAPE, (i, i, i)) for i in (60, 120)]


FILES = (
    *(_saved("JPEG", mode) for mode in ("RGB", "L", "CMYK")),
    *(_saved("JPEG", progressive=True), _saved("JPEG", exif=_exif())),
    *(_saved("PNG", mode) for mode in ("RGB", "1", "LA")),
    *(_saved("PNG", "P", transparency=bytes(range(200))), _saved("PNG", "RGBA", exif=_exif())),
    *(_saved("WEBP"), _saved("WEBP", "RGBA", lossless=True, exif=_exif())),
    *(_saved(kind, save_all=True, append_images=_frames()) for kind in ("MPO", "PNG", "WEBP")),
)
GOOD = base64.b64encode(FILES[0]).decode()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=20,
)


@st.composite
def damaged(draw):
    """An image file with some bytes changed, removed, doubled or cut off, most of them in its headers."""
    data = bytearray(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, min(len(data), draw(st.sampled_from([40, 300, 10_000])))))
        how = draw(st.sampled_from(["change", "remove", "double", "cut"]))
        some = draw(st.binary(min_size=1, max_size=4))
        if how == "change":
            data[at : at + len(some)] = some
        elif how == "remove":
            del data[at : at + 5 * len(some)]
        elif how == "double":
            data[at:at] = data[max(0, at - 30) : at]
        else:
            del data[at + 10 :]
    return bytes(data)


@st.composite
def texts(draw):
    """What stands for an image: base64 of something, in several spellings, or no base64 at all."""
    text = base64.b64encode(draw(damaged() | st.binary(max_size=60))).decode()
    how = draw(st.integers(0, 9))
    spellings = [
        text.replace("+", "-").replace("/", "_"),
        text.rstrip("="),
        text + "=",
        f"data:image/jpeg;base64,{text}",
        "\n".join(text[i : i + 76] for i in range(0, len(text), 76)),
        f" {text}",
    ]
    return spellings[how] if how < len(spellings) else text


def _encoded(message):
    # As JSON is written, save that numbers which are none (NaN) are let through.
    return json.dumps(message).encode()


messages = st.one_of(
    st.lists(texts(), min_size=1, max_size=3).map(lambda images: {"images": images}),
    st.lists(texts() | json_values, max_size=6).map(lambda images: {"images": images}),
    st.lists(st.text(max_size=80), max_size=4).map(lambda images: {"images": images}),
    json_values.map(lambda value: {"images": value}),
    st.tuples(json_values, texts()).map(lambda both: {"image": both[0], "Images": [both[1]]}),
    json_values,
)


@st.composite
def odd(draw):
    """Bodies that no encoder of JSON writes."""
    number = draw(st.integers(1, 4000))
    head = b'{"images": ['
    made = [b"[" * number, b'{"images":' * number, b" " * number, b""]
    made += [head + b"1" * number * 3 + b"]}", head + b"1e" + b"9" * number + b"]}"]
    made += [head + b'"",' * number + b'""]}', head + b'], "images": ["' + b"A" * number * 4 + b'"]}']
    made += [head + b'"' + b"\\ud800" * number + b'"]}', head + b'"\x00' + b"\xff" * number + b'"]}']
    made += [head + b"[]," * number + b"[]]}", json.dumps({"images": ["A" * number]}).encode("utf-16")]
    return draw(st.sampled_from([*made, b"\xef\xbb\xbf" + _encoded({"images": [GOOD[:number]]})]))


@st.composite
def cut(draw):
    """A good body that has lost its end, its beginning, or some bytes between."""
    body = bytearray(_encoded({"images": [GOOD]}))
    start = draw(st.integers(0, len(body)))
    del body[start : start + draw(st.integers(1, len(body)))]
    return bytes(body)


bodies = st.one_of(messages.map(_encoded), messages.map(_encoded), odd(), cut(), st.binary(max_size=300))
