"""The steps before the models, loaded as Triton loads them: the service's pixels, and bad files alone."""

import io

import numpy as np
import pytest
from PIL import Image

from server.models.preprocess import preprocess
from server.spec import ROOT
from tests.server.backend import Input, load


@pytest.fixture
def model_of(monkeypatch):
    """Loads a step's model.py."""
    return lambda name: load(ROOT / "triton_repo" / "payloads" / name / "1" / "model.py", monkeypatch)


@pytest.fixture
def decoder(model_of):
    """A decode_jpeg that is ready."""
    model = model_of("decode_jpeg").TritonPythonModel()
    model.initialize({})
    yield model
    model.finalize()


def request_of(tensor):
    return {"input": Input(tensor)}


def files(*jpegs):
    column = np.empty((len(jpegs), 1), dtype=object)
    column[:, 0] = jpegs
    return request_of(column)


def jpeg(mode, size, seed=0, kind="JPEG"):
    """A JPEG file of random blocks, or one of another kind."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    noise = np.random.default_rng(seed).integers(0, 256, (8, 8, bands), dtype=np.uint8).squeeze()
    buffer = io.BytesIO()
    Image.fromarray(noise, mode).resize(size, Image.Resampling.BICUBIC).save(buffer, kind)
    return buffer.getvalue()


PNG = jpeg("RGB", (224, 224), kind="PNG")


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("size", [(224, 224), (640, 427), (301, 451), (17, 40)])
def test_a_file_becomes_the_pixels_that_the_service_makes_of_it(decoder, mode, size):
    file = jpeg(mode, size)
    ((name, pixels),) = decoder.execute([files(file)])[0]
    assert (name, pixels.dtype, pixels.shape) == ("pixels", np.float32, (1, 3, 224, 224))
    np.testing.assert_array_equal(pixels[0], preprocess(Image.open(io.BytesIO(file))))


def test_the_requests_of_a_batch_get_their_own_pixels(decoder):
    jpegs = [jpeg("RGB", (230, 240), seed) for seed in range(4)]
    expected = [preprocess(Image.open(io.BytesIO(file))) for file in jpegs]
    replies = decoder.execute([files(jpegs[0]), files(*jpegs[1:3]), files(jpegs[3])])
    assert [reply[0].values.shape[0] for reply in replies] == [1, 2, 1]
    np.testing.assert_array_equal(np.concatenate([reply[0].values for reply in replies]), np.stack(expected))


@pytest.mark.parametrize("bad", [b"", b"no picture", PNG, jpeg("RGB", (300, 300))[:700]])
def test_a_bad_file_fails_alone_and_is_named(decoder, bad):
    good = jpeg("RGB", (224, 224))
    first, broken, last = decoder.execute([files(good), files(good, bad), files(good)])
    assert (broken.code, str(broken)) == (
        "invalid",
        "image 1 of the request is not a complete JPEG file: send its bytes unencoded, not in base64",
    )
    np.testing.assert_array_equal(first[0].values, last[0].values)


@pytest.mark.parametrize("size", [(6_400, 6_400), (9_000, 10)])
def test_too_many_pixels_are_not_decoded(decoder, size):
    """The second has few, but more once its shorter side is 224."""
    buffer = io.BytesIO()
    Image.new("L", size).save(buffer, "JPEG")
    (reply,) = decoder.execute([files(buffer.getvalue())])
    assert str(reply) == "image 0 of the request has too many pixels: send at most 40,000,000"


def test_pixels_are_scaled_as_the_service_does(model_of):
    model = model_of("normalise_uint8").TritonPythonModel()
    pixels = np.random.default_rng(1).integers(0, 256, (3, 3, 224, 224), dtype=np.uint8)
    replies = model.execute([request_of(pixels[:1]), request_of(pixels[1:])])
    found = np.concatenate([reply[0].values for reply in replies])
    assert found.dtype == np.float32
    for one, expected in zip(found, pixels, strict=True):
        np.testing.assert_array_equal(one, preprocess(Image.fromarray(expected.transpose(1, 2, 0))))
