"""The model.py files, loaded as Triton loads them but with their engines, or their sleep, replaced."""

import json

import numpy as np
import pytest

from server.embedded.options import EmulationProfile
from server.spec import ROOT
from tests.server.backend import Input, load


@pytest.fixture(params=["onnx", "openvino"])
def module(request, monkeypatch):
    """One model.py."""
    return load_model(request.param, monkeypatch)


def load_model(engine, monkeypatch):
    (path,) = (ROOT / "triton_repo" / engine).glob("*/1/model.py")
    return load(path, monkeypatch, "onnxruntime", "openvino")


def request_of(*values):
    return {"input": Input(np.array(values, np.float32).reshape(-1, 1))}


def test_the_requests_of_a_batch_get_their_own_embeddings(module):
    model = module.TritonPythonModel()
    sizes = []

    def embed(pixels):
        sizes.append(len(pixels))
        return pixels * 10

    model._embed = embed
    replies = model.execute([request_of(1), request_of(2, 3), request_of(4)])
    assert [reply[0].name for reply in replies] == ["embedding"] * 3
    assert [reply[0].values.ravel().tolist() for reply in replies] == [[10], [20, 30], [40]]
    assert sizes == [4]


@pytest.mark.parametrize("module", ["openvino"], indirect=True)
def test_other_batches_are_made_up_of_compiled_ones(module):
    found = [module.split_batch(images) for images in (1, 3, 5, 31, 32)]
    assert found == [[1], [2, 1], [4, 1], [16, 8, 4, 2, 1], [32]]
    model = module.TritonPythonModel()
    model._compiled = {batch: lambda piece, batch=batch: [piece + 1000 * batch] for batch in module.BATCHES}
    pixels = np.arange(7, dtype=np.float32).reshape(7, 1)
    assert model._embed(pixels).ravel().tolist() == [4000, 4001, 4002, 4003, 2004, 2005, 1006]


def assert_unit_vectors(replies, images):
    assert [reply[0].name for reply in replies] == ["embedding"] * len(images)
    assert [reply[0].values.shape for reply in replies] == [(count, 512) for count in images]
    for ((_, vectors),) in replies:
        assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6


@pytest.mark.parametrize("module", ["null"], indirect=True)
def test_the_null_model_answers_without_pixels(module):
    model = module.TritonPythonModel()
    assert_unit_vectors(model.execute([request_of(1), request_of(2, 3)]), [1, 2])


@pytest.mark.parametrize("module", ["emulated"], indirect=True)
def test_an_emulated_execution_sleeps_once_for_all_its_images(module, monkeypatch):
    slept_ms = []
    monkeypatch.setattr(module.time, "sleep", lambda seconds: slept_ms.append(round(seconds * 1e3, 6)))
    given = {
        name: {"string_value": value}
        for name, value in EmulationProfile(3.0, 2.0, 100.0, sizes_ms=((4, 60.0),)).parameters().items()
    }
    model = module.TritonPythonModel()
    model.initialize({"model_config": json.dumps({"parameters": given})})
    assert_unit_vectors(model.execute([request_of(1), request_of(2, 3)]), [1, 2])
    for size in (3, 1, 4, 4):
        model.execute([request_of(*range(size))])
    assert slept_ms == [109, 9, 105, 160, 60]
