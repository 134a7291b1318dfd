"""What every worker is handed at the beginning of a study."""

import numpy as np
import pytest

from swarm.options.model import Options
from swarm.study import handout
from swarm.study.handout import hand_out
from tests.swarm.output.test_results_folder import options
from tests.swarm.stand import FakeWorkers
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

IMAGES = ImageSet((b"one",), np.zeros((1, 3, 224, 224), dtype=np.float32), "test")
ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "h:1", "m")
EMULATED = Endpoint("emulated-http", "emulated", "http", "fp32", "h:1", "emulated")
GOLDEN = np.ones((1, 512), dtype=np.float32)


def handed_out(reference: Endpoint, made: Options, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    workers = FakeWorkers()
    monkeypatch.setattr(handout, "golden_embeddings", lambda *_: GOLDEN)
    hand_out(workers, reference, IMAGES, made)  # type: ignore[arg-type]
    ((op, study),) = workers.asked
    assert op == "study"
    return study


def test_golden_embeddings_and_how_answers_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    study = handed_out(ONNX, options("--request-timeout", "7"), monkeypatch)
    assert study["golden"] == GOLDEN.tobytes()
    assert (study["timeout_s"], study["min_cosine"]) == (7, 0.999)


@pytest.mark.parametrize("reference", [EMULATED, ONNX.floor()])
def test_no_golden_embeddings_of_what_does_not_compute(
    reference: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = handed_out(reference, options(), monkeypatch)
    assert study["golden"] == b""


@pytest.mark.parametrize(("given", "traced"), [((), False), (("--trace",), True)])
def test_workers_are_told_whether_to_name_their_requests(
    given: tuple[str, ...], traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert handed_out(EMULATED, options(*given), monkeypatch)["trace"] is traced
