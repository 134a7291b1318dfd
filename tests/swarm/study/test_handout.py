"""What every worker is handed at the beginning of a study."""

import itertools
import os
import time

import numpy as np
import pytest

from swarm.errors import StudyError
from swarm.options.model import Options
from swarm.study.handout import ask_all, check_reach, hand_out, wait_for_workers
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
    monkeypatch.setattr(golden, "fetched", lambda endpoint, images, timeout_s, say: timeout_s * GOLDEN)
    hand_out(workers, [reference], IMAGES, made, print)  # type: ignore[arg-type]
    ((op, study),) = workers.asked
    assert op == "study"
    return study


def test_workers_are_told_all_that_options_say_of_pictures_answers_and_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = "--request-timeout 7 --min-cosine 0.85 --images p --texts t --pool-mb 3"
    more = "--grpc-scheduling fair --raw-results 5 --trace --traceparent 0.1 --slo p99<=100"
    told = handed_out(ONNX, options(*asked.split(), *more.split()), monkeypatch)
    assert told.pop("regions").startswith("inferswarm-")
    assert told == {
        "golden": {ONNX.space: (7 * GOLDEN).tobytes()}, "min_cosine": 0.85, "timeout_s": 7,
        "images": os.path.abspath("p"), "texts": os.path.abspath("t"), "pool_bytes": 3_000_000,
        "kinds": [], "slo": "p99<=100",
        "scheduling": "fair", "raw_results": 5, "trace": True, "traceparent": 0.1, "sha256": IMAGES.sha256,
    }  # fmt: skip


class Arriving(FakeWorkers):
    """One more worker at every look, up to `most`; the last of them says later where it is."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.looks, self.most = 0, most

    def taking_part(self) -> list[str]:
        self.looks += 1
        return [f"w{number}" for number in range(min(self.looks - 1, self.most))]

    @property
    def strangers(self) -> list[str]:
        return ["w2"] if self.looks < 8 else []


@pytest.mark.parametrize("wanted", [1, 3, 9])
def test_a_study_begins_with_as_many_workers_as_it_wants_once_all_say_where_they_are(wanted: int) -> None:
    said: list[str] = []
    workers = Arriving(9)
    assert wait_for_workers(workers, said.append, wanted) >= wanted  # type: ignore[arg-type]
    assert workers.looks > 8
    assert said == ["waiting for a worker to connect"]


@pytest.mark.parametrize("there", [0, 2])
def test_after_a_minute_it_begins_with_those_that_are_there_or_not_at_all(
    there: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0, 20)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    workers = Arriving(there)
    if there:
        assert wait_for_workers(workers, print, 9) == 2  # type: ignore[arg-type]
    else:
        with pytest.raises(StudyError, match="no worker has connected; start one with --worker"):
            wait_for_workers(workers, print)  # type: ignore[arg-type]


def test_every_worker_reaches_every_endpoint_by_every_way() -> None:
    workers, ways = FakeWorkers(), [{"h": "198.18.0.1"}, {"h": "198.18.1.1"}]
    found = check_reach(workers, [ONNX, EMULATED], ways)  # type: ignore[arg-type]
    endpoints = [ONNX.to_dict(), EMULATED.to_dict()]
    assert workers.asked == [("reach", {"endpoints": endpoints, "ways": ways})]
    assert found == {"w0": {}, "w1": {}}


def test_one_that_cannot_and_none_that_answers_end_the_study() -> None:
    workers = FakeWorkers()
    workers.errors = {"reach": "onnx-http is refused"}
    said = "host1_a: onnx-http is refused; host2_b: onnx-http is refused"
    with pytest.raises(StudyError, match=said):
        check_reach(workers, [ONNX], [])  # type: ignore[arg-type]
    workers.present = []
    with pytest.raises(StudyError, match=r"no worker answered \(study\)"):
        ask_all(workers, "study", {})  # type: ignore[arg-type]
