"""A real export of the model."""

import time

import pytest

from server.models.export import current_stamp, export, onnx_path
from server.spec import ModelSpec

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_an_export_is_made_once_and_again_for_other_weights(tmp_path, capsys):
    export(ModelSpec(), tmp_path)
    stamp = current_stamp(ModelSpec(), tmp_path)
    assert stamp["max_difference"] <= 1e-4
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".lock",
        "ViT-B-32-random-seed-0.json",
        "ViT-B-32-random-seed-0.onnx",
    ]
    made = onnx_path(ModelSpec(), tmp_path).stat().st_mtime_ns
    started = time.monotonic()
    export(ModelSpec(), tmp_path)
    assert time.monotonic() - started < 2
    assert onnx_path(ModelSpec(), tmp_path).stat().st_mtime_ns == made
    assert capsys.readouterr().out.endswith("ViT-B-32-random-seed-0.onnx is up to date: nothing to export\n")
    assert current_stamp(ModelSpec(seed=1), tmp_path) is None
    export(ModelSpec(seed=1), tmp_path)
    assert current_stamp(ModelSpec(seed=1), tmp_path)["weights_sha256"] != stamp["weights_sha256"]
