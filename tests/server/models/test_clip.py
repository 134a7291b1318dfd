"""The image tower in PyTorch: its precisions, several inputs at once, and torch.compile."""

import numpy as np
import pytest
import torch

from server.hardware.compiler import compiler_lack
from server.models import clip
from server.models.clip import ClipEmbedder, ImageTower
from server.settings import Settings


class Brightness(torch.nn.Module):
    """Two numbers of an image: its mean, and the dtype it came in."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, pixels):
        return torch.stack([pixels.mean((1, 2, 3)) * self.one, self.one.expand(len(pixels))], 1)


@pytest.fixture
def embedder(monkeypatch):
    """Makes one that computes Brightness in so many bits."""
    monkeypatch.setattr(clip, "load_tower", lambda spec: ImageTower(Brightness()).eval())

    def make(precision="fp32", **how):
        made = ClipEmbedder(Settings(device="cpu", precision=precision), **how)
        made.load()
        return made

    return make


def images(*values):
    return torch.tensor(values).reshape(-1, 1, 1, 1).expand(-1, 3, 224, 224)


def of(*values):
    made = np.array([[value, 1] for value in values], np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_inputs_come_back_as_one_in_their_order(embedder):
    found = embedder().compute([images(1.0), images(2.0, 3.0), images(0.0)])
    assert found.dtype == torch.float32
    assert np.abs(found.numpy() - of(1, 2, 3, 0)).max() < 1e-6


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("fp16", torch.float16)])
def test_it_computes_in_its_precision_and_answers_in_float32(embedder, precision, dtype):
    made = embedder(precision)
    assert next(made._tower.parameters()).dtype == dtype
    found = made.embed(images(1 / 3).numpy())
    # A third in half precision is 0.33325.
    assert found.dtype == np.float32
    assert found[0, 0] / found[0, 1] == pytest.approx(1 / 3 if precision == "fp32" else 0.33325, abs=1e-5)


def test_lengths_are_taken_in_float32(embedder):
    """In half precision the square of 300 would be infinite, and the vector zero."""
    found = embedder("fp16").compute([images(300.0)])
    assert np.abs(found.numpy() - of(300)).max() < 1e-5


def test_what_was_compiled_is_told_and_nothing_is_compiled_after_it(embedder, monkeypatch):
    compiled = []

    def compile_(tower, dynamic):
        assert dynamic is True
        return lambda pixels: compiled.append(len(pixels)) or tower(pixels)

    stances = []
    monkeypatch.setattr(torch, "compile", compile_)
    monkeypatch.setattr(torch.compiler, "set_stance", stances.append)
    made = embedder(compiled=True)
    assert compiled == [1] * 4 + [2] * 4
    assert [call.images for call in made.first_calls] == [1, 2]
    assert all(call.first_ns > 0 and call.next_ns > 0 for call in made.first_calls)
    assert stances == ["fail_on_recompile"]
    assert embedder().first_calls == []


def test_inputs_go_through_pinned_memory_where_they_fit_and_are_not_mixed_up(embedder):
    """Memory that stands for the pinned, which only a GPU's driver gives."""
    made = embedder()
    made._pinned = torch.empty(3, 3, 224, 224)
    first, second = (made.compute([images(value), images(value + 1)]) for value in (1.0, 5.0))
    assert np.abs(first.numpy() - of(1, 2)).max() < 1e-6
    assert np.abs(second.numpy() - of(5, 6)).max() < 1e-6
    assert made._pinned[:2, 0, 0, 0].tolist() == [5.0, 6.0]
    more = made.compute([images(1.0, 2.0), images(3.0, 4.0)])
    assert np.abs(more.numpy() - of(1, 2, 3, 4)).max() < 1e-6
    assert made._pinned[:2, 0, 0, 0].tolist() == [5.0, 6.0]


@pytest.fixture
def stance():
    """PyTorch as it was, once something has been compiled."""
    yield
    torch.compiler.set_stance("default")
    torch.compiler.reset()


@pytest.mark.skipif(bool(compiler_lack()), reason=compiler_lack())
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_tower_takes_any_number_of_images_and_is_compiled_no_more(embedder, stance):
    made = embedder(compiled=True)
    assert all(call.first_ns > call.next_ns for call in made.first_calls)
    for values in ((1.0,), (1.0, 2.0), tuple(map(float, range(32)))):
        assert np.abs(made.compute([images(*values)]).numpy() - of(*values)).max() < 1e-6
    together = made.compute([images(1.0), images(2.0, 3.0)])
    assert np.abs(together.numpy() - of(1, 2, 3)).max() < 1e-6
    with pytest.raises(RuntimeError, match="Detected recompile"):
        made._tower(images(1.0).double())
