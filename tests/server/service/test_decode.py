import base64
import io
import json
import time

import numpy as np
import pytest
from PIL import Image

from server.errors import Refusal
from server.models.preprocess import preprocess
from server.service.decode import decode, parse, prepare
from server.settings import Settings

SEND = 'send {"images": [base64 JPEG, ...]}'
NO_LIST = f"the body has no list `images`: {SEND}"


def encoded(size=(300, 260), colour=(200, 30, 90), kind="PNG"):
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def test_images_are_prepared_in_the_order_sent():
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    body = json.dumps({"images": [encoded(colour=colour) for colour in colours]}).encode()
    prepared = prepare(body, Settings())
    expected = [preprocess(Image.new("RGB", (300, 260), colour)) for colour in colours]
    assert np.array_equal(prepared.pixels, np.stack(expected))
    assert prepared.decode_ns > 0
    assert prepared.preprocess_ns > 0


def slower(function, seconds):
    def slow(*given):
        time.sleep(seconds)
        return function(*given)

    return slow


def test_the_time_of_all_images_counts_and_putting_them_together_is_preprocessing(monkeypatch):
    steps = {"parse": (parse, 0.02), "decode": (decode, 0.03), "preprocess": (preprocess, 0.01)}
    for name, step in (steps | {"np.stack": (np.stack, 0.05)}).items():
        monkeypatch.setattr(f"server.service.decode.{name}", slower(*step))
    began = time.perf_counter_ns()
    # Of its thread's own time it takes little, and so it does not take too long.
    prepared = prepare(json.dumps({"images": [encoded()] * 3}).encode(), Settings(max_decode_s=0.1))
    assert prepared.decode_ns >= 110e6
    assert prepared.preprocess_ns >= 80e6
    assert prepared.decode_ns + prepared.preprocess_ns <= time.perf_counter_ns() - began


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        *((body, 400, f"the body is not JSON: {SEND}") for body in (b"{", b"\xff\xfe", b"[" * 100_000)),
        *((body, 400, NO_LIST) for body in (b"[]", b'{"images": "abc"}', b"[" + b"0," * 1002 + b"0]")),
        (b'{"images": []}', 400, "`images` is empty: send at least one image"),
        (b'{"images": ["", 1]}', 400, "images[1] is not a string: send base64"),
        (b"[" + b"0," * 1003 + b"0]", 413, "the body has far more than 2 values: send at most 2 images"),
        (b'{"images": ["", "", ""]}', 413, "`images` has 3 images: send at most 2 per request"),
    ],
)
def test_a_body_that_will_not_do(body, status, sentence):
    with pytest.raises(Refusal) as caught:
        parse(body, max_batch=2)
    assert (caught.value.status, caught.value.detail) == (status, sentence)


def damaged(text):
    return base64.b64encode(base64.b64decode(text)[:200]).decode()


INCOMPLETE = ("", "aGVsbG8=", encoded(kind="BMP"), damaged(encoded(kind="JPEG")))


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        *((text, 400, "images[0] is not base64") for text in ("not base64!", "ä")),
        *((text, 400, "images[0] is not a complete JPEG, PNG or WebP image") for text in INCOMPLETE),
        (encoded((400, 300)), 413, "images[0] has too many pixels, 400 x 300: send at most 100,000"),
        (encoded((2, 9)), 413, "images[0] has too many pixels, 224 x 1008: send at most 100,000"),
        (encoded((20_000, 9_500)), 413, "images[0] has too many pixels: send at most 100,000"),
    ],
)
def test_an_image_that_will_not_do(text, status, sentence):
    with pytest.raises(Refusal) as caught:
        decode(text, "images[0]", max_pixels=100_000)
    assert (caught.value.status, caught.value.detail) == (status, sentence)
