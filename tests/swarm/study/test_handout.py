"""What every worker is handed at the beginning of a study."""

import os

import numpy as np
import pytest

from swarm.options.model import Options
from swarm.study.handout import hand_out
from swarm.targets import golden
from tests.pictures import image_set
from tests.presets import preset
from tests.swarm.output.test_results_folder import options
from tests.swarm.stand import FakeWorkers
from users.endpoint import Endpoint

IMAGES = image_set(1)
ONNX = preset("onnx-http", "h:1", "m")
EMULATED = preset("emulated-http", "h:1")
GOLDEN = np.ones((1, 512), dtype=np.float32)


def handed_out(reference: Endpoint, made: Options, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    workers = FakeWorkers()
    monkeypatch.setattr(golden, "fetched", lambda endpoint, *_: GOLDEN)
    hand_out(workers, [reference], IMAGES, made)  # type: ignore[arg-type]
    ((op, study),) = workers.asked
    assert op == "study"
    return study


def test_golden_embeddings_and_how_answers_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    study = handed_out(ONNX, options("--request-timeout", "7"), monkeypatch)
    assert study["golden"] == {ONNX.space: GOLDEN.tobytes()}
    assert (study["timeout_s"], study["min_cosine"]) == (7, 0.999)


@pytest.mark.parametrize("reference", [EMULATED, ONNX.floor()])
def test_no_golden_embeddings_of_what_does_not_compute(
    reference: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = handed_out(reference, options(), monkeypatch)
    assert study["golden"] == {}


@pytest.mark.parametrize(("given", "traced"), [((), False), (("--trace",), True)])
def test_workers_are_told_whether_to_name_their_requests(
    given: tuple[str, ...], traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert handed_out(EMULATED, options(*given), monkeypatch)["trace"] is traced


def test_workers_are_told_where_pictures_and_texts_are_and_what_they_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = handed_out(ONNX, options("--images", "p", "--texts", "t", "--pool-mb", "3"), monkeypatch)
    found = {name: study[name] for name in ("images", "texts", "pool_bytes", "sha256")}
    assert found == {
        "images": os.path.abspath("p"),
        "texts": os.path.abspath("t"),
        "pool_bytes": 3_000_000,
        "sha256": IMAGES.sha256,
    }
