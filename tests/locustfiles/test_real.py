"""The five endpoints for real: the PyTorch service and two tritonservers, started by the locustfile."""

import itertools
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from swarm.errors import UsageError
from swarm.targets.endpoints import flag_of
from swarm.targets.preflight import check_target, verdict
from tests.locustfiles.console import ENDPOINTS, Console, all_gone, study
from tests.presets import preset
from tests.processes import is_listening, wait_until
from users import Endpoint
from users.backends.asking import read_counters
from users.backends.registry import codec_of
from users.inputs.images import ImageSet, load_images
from users.transport.transports import client

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A study that runs for as long as the tests of this file need its servers; then Ctrl-C."""
    console = study(tmp_path_factory.mktemp("running"), "--seconds", "300", "--seed", "1")
    try:
        console.wait_for("results in", 240)
        yield console
    finally:
        console.end()


@pytest.fixture(scope="module")
def endpoints(running: Console) -> list[Endpoint]:
    """The endpoints of the running study, from the header of its ledger."""
    header = running.ledger()[0]
    made = []
    for name, target in header["endpoints"].items():
        own = preset(name, target["url"])
        made.append(replace(own, model=target["model"] if own.model else ""))
    return made


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return load_images("")


def test_one_picture_through_all_five(endpoints: list[Endpoint], images: ImageSet) -> None:
    assert tuple(endpoint.name for endpoint in endpoints) == ENDPOINTS
    firsts = {e.name: verdict(e, images, print) for e in endpoints}
    for one, other in itertools.combinations(firsts, 2):
        assert firsts[one].embedding @ firsts[other].embedding >= 0.999, (one, other)
    assert all(first.took_ns > 1_000_000 for first in firsts.values())


def test_two_pictures_are_told_apart(endpoints: list[Endpoint], images: ImageSet) -> None:
    """Else the golden check could not fail: unlike pictures need unlike embeddings, random weights or not."""
    codec = codec_of(endpoints[1])
    with client(codec, timeout_s=30) as user:
        rows = user.send(codec.prepare(images, tuple(range(32)))).embeddings
    cosines = (rows @ rows.T)[~np.eye(32, dtype=bool)]
    assert np.quantile(cosines, 0.95) < 0.999


@pytest.mark.parametrize("index", range(1, 5), ids=ENDPOINTS[1:])
def test_a_batch_counts_as_one_request_of_many_images(
    endpoints: list[Endpoint], images: ImageSet, index: int
) -> None:
    endpoint, codec = endpoints[index], codec_of(endpoints[index])
    before = read_counters(endpoint)["counters"]
    with client(codec, timeout_s=30) as user:
        reply = user.send(codec.prepare(images, (0, 1, 2)))
    assert reply.embeddings.shape == (3, 512)
    # Triton counts a request after it has answered it.
    wait_until(lambda: read_counters(endpoint)["counters"]["requests"] > before["requests"], 5)
    after = read_counters(endpoint)["counters"]
    assert after["images"] - before["images"] >= 3
    assert after["compute_ns"] > before["compute_ns"]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (1, 'HTTP 400 {"error":"Model version not ready"}'),
        (2, "NOT_FOUND Request for unknown model: 'resnet' is not found"),
    ],
    ids=["http", "grpc"],
)
def test_a_model_that_is_not_there(
    endpoints: list[Endpoint], images: ImageSet, index: int, words: str
) -> None:
    wrong = Endpoint.from_dict({**endpoints[index].to_dict(), "model": "resnet"})
    with pytest.raises(UsageError) as caught:
        check_target(wrong, images, print)
    assert str(caught.value) == (
        f"{flag_of(wrong)} {wrong.address}: has no model 'resnet' that is ready "
        f"({words}; it has null, openclip_vit_b32); name another by --onnx-model"
    )


def test_ctrl_c_leaves_no_process_and_no_busy_port(running: Console, endpoints: list[Endpoint]) -> None:
    """The last test of this file that needs the servers."""
    family = running.family()
    assert len(family) >= 5
    running.signal(signal.SIGINT)
    assert running.wait(10) == 3, running.text
    wait_until(lambda: all_gone(family), 1)
    assert not any(is_listening(endpoint.port) for endpoint in endpoints)
    assert running.ledger()[-1]["status"] == "interrupted"
    assert (running.result() / "report.html").exists()


@pytest.mark.timeout(580)
def test_a_tritonserver_killed_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """Its failures are counted with their kind, the run ends, and what was measured can be read."""
    only = ("--skip-trt", "--cells", "onnx-http/b1/c8", "--seconds", "60", "--warm-up", "1")
    console = study(tmp_path, *only)
    try:
        console.wait_for("results in", 240)
        ledger = console.result() / "ledger.jsonl"
        measured = re.compile(r'"kind":"window".*"phase":"measure"')
        wait_until(lambda: bool(measured.search(ledger.read_text())), 240)
        (triton,) = [process for process in console.family() if process.name() == "tritonserver"]
        triton.kill()
        assert console.wait(30) == 3, console.text
    finally:
        console.end()
    failures = Counter[str]()
    for record in console.ledger():
        failures.update(record.get("failures") or {})
    assert set(failures) <= {"reset", "refused"}
    assert failures["reset"] >= 1
    (end,) = [r for r in console.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert (end["status"], end["note"]) == (
        "failed", "the embedded onnx server died; see the end of its log above",
    )  # fmt: skip
    (row,) = console.cells()
    assert int(row["failures"]) == sum(failures.values())
    assert int(row["requests"]) > int(row["failures"])
    assert {"failed", "failures"} <= set(row["caveats"].split(";"))
