"""Arrays by DLPack: what a model.py gives and takes, and that nothing is held when Triton is done with it."""

import gc
import sys

import numpy as np
import pytest

from server.triton.repository import TENSORS
from tests.server.backend import Input, Output, module_at, utilities


@pytest.fixture
def tensors(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utilities())
    return module_at(TENSORS)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 2, 2), (5,), (0, 512)])
def test_an_array_arrives_as_it_was(tensors, dtype, shape):
    sent = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    name, found = tensors.tensor_of("embedding", sent)
    assert (name, found.dtype, found.shape) == ("embedding", sent.dtype, shape)
    np.testing.assert_array_equal(found, sent)


def test_a_part_that_does_not_lie_together_arrives_as_it_was(tensors):
    sent = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1::2]
    np.testing.assert_array_equal(tensors.tensor_of("x", sent).values, sent)


def test_an_input_is_read_where_it_lies(tensors):
    pixels = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(tensors.array_of({"input": Input(pixels)}, "input"), pixels)


def test_a_response_is_held_until_triton_lets_go(tensors):
    made = [tensors.tensor_of("x", np.full((4, 512), number, np.float32)) for number in range(100)]
    assert len(tensors.held) == 100
    gc.collect()
    assert [output.values[3, 511] for output in made] == list(range(100))
    made.clear()
    assert tensors.held == {}


def test_a_capsule_takes_nothing_with_it_when_it_goes(tensors):
    """NumPy's own looks after its name, which Triton has changed, and complains to Triton's log."""
    output = Output("x", tensors.capsule(np.ones(3, np.float32)))
    output._capsule = None
    assert output.values.tolist() == [1, 1, 1]
