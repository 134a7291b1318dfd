"""The models in PyTorch behind a real tritonserver: one as it is, its twin under torch.compile."""

import json
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from server.hardware.compiler import compiler_lack
from server.spec import ROOT
from server.triton.repository import TRITON_MODELS
from tests.server.backend import Input, load
from tests.server.running import embed_triton, up

WAYS = ((tritonclient.http, "http"), (tritonclient.grpc, "grpc"))


class Doubled:
    """Takes what a model.py hands on."""

    def compute(self, inputs):
        self.sizes = [len(one) for one in inputs]
        return 2 * inputs[0].new_tensor([value for one in inputs for value in one.ravel().tolist()])[:, None]


def test_the_requests_of_a_batch_get_their_own_embeddings(monkeypatch):
    path = ROOT / "triton_repo" / "torch" / TRITON_MODELS["torch"] / "1" / "model.py"
    model = load(path, monkeypatch).TritonPythonModel()
    model._embedder = Doubled()
    requests = [{"input": Input(np.array(one, np.float32).reshape(-1, 1))} for one in ([1], [2, 3], [4])]
    replies = model.execute(requests)
    assert [reply[0].name for reply in replies] == ["embedding"] * 3
    assert [reply[0].values.ravel().tolist() for reply in replies] == [[2], [4, 6], [8]]
    assert model._embedder.sizes == [1, 2, 1]


def test_the_compiled_twin_is_the_same_program():
    folders = (ROOT / "triton_repo" / name / TRITON_MODELS[name] for name in ("torch", "inductor"))
    assert len({(folder / "1/model.py").resolve() for folder in folders}) == 1


def pixels(images):
    return np.random.default_rng(0).standard_normal((images, 3, 224, 224), dtype=np.float32)


@pytest.mark.system
def test_pytorch_behind_triton_computes_what_onnx_runtime_does_in_fp32(tmp_path):
    with up("--only", "torch,onnx", log_dir=tmp_path) as running:
        torch, onnx = (running.endpoints[name] for name in ("torch", "onnx"))
        assert (torch["provider"], torch["precision"]) == ("PyTorch on cpu", "fp32")
        assert torch["weights_sha256"] == running.ready["weights_sha256"]
        expected = embed_triton(tritonclient.http, onnx["http"], onnx["model"], pixels(6))
        for module, kind in WAYS:
            found = embed_triton(module, torch[kind], torch["model"], pixels(6))
            assert np.abs(found - expected).max() < 1e-4
            alone = embed_triton(module, torch[kind], torch["model"], pixels(1))
            assert np.abs(alone - expected[:1]).max() < 1e-4
        assert embed_triton(tritonclient.http, torch["http"], "null", pixels(3)).shape == (3, 512)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.skipif(bool(compiler_lack()), reason=compiler_lack())
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_all_servers_in_pytorch_agree_and_nothing_compiles_while_they_serve(precision, tmp_path):
    options = f"--only pytorch,torch,inductor --precision {precision} --payloads fp32,uint8"
    with up(*options.split(), log_dir=tmp_path) as running:
        ends = running.endpoints
        with urllib.request.urlopen(ends["pytorch"]["url"] + "/readyz") as reply:
            assert json.load(reply)["precision"] == precision
        assert {end["precision"] for end in ends.values()} == {precision}
        assert [one["batch"] for one in ends["inductor"]["compiled"]] == [1, 2]
        assert all(one["first_ns"] > one["second_ns"] for one in ends["inductor"]["compiled"])
        embeddings = {
            (name, kind): embed_triton(module, ends[name][kind], ends[name]["model"], pixels(5))
            for name in ("torch", "inductor")
            for module, kind in WAYS
        }
        first, *others = embeddings.values()
        for other in others:
            assert (first * other).sum(axis=1).min() >= 0.999
            assert np.abs(np.linalg.norm(other, axis=1) - 1).max() < 1e-5
        # Of a size that nobody has sent before, and one by one.
        end = ends["inductor"]
        for images in (7, 1, 32):
            found = embed_triton(tritonclient.http, end["http"], end["model"], pixels(images))
            assert found.shape == (images, 512)
        with pytest.raises(InferenceServerException):
            embed_triton(tritonclient.http, end["http"], end["model"], pixels(33))
