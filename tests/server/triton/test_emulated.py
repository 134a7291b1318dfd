"""The emulated server, real but for its model: its queue, its batches, its sleep and its trace."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from server.triton.tritonserver import VARIABLE
from tests.server.running import embed_triton, up

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """A server that sleeps 40 ms, and 300 ms longer for the first of a batch size."""
    with up("--emulate", "40+0/300", log_dir=tmp_path_factory.mktemp("logs")) as running:
        yield running


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A server of two instances that traces its requests."""
    folder = tmp_path_factory.mktemp("logs")
    options = ("--emulate", "a100", "--instances", "2", "--queue-delay-us", "500", "--trace-dir", str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "control=0123456789abcdef")
        with up(*options, log_dir=folder) as running:
            yield running.endpoints["emulated"]


def ask(end, images, module=tritonclient.http):
    address = end["http" if module is tritonclient.http else "grpc"]
    return embed_triton(module, address, end["model"], np.zeros((images, 3, 224, 224), np.float32))


def read_json(path):
    """What a file holds, or None as long as it is not whole."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def statistics(end):
    with tritonclient.http.InferenceServerClient(end["http"]) as client:
        return client.get_inference_statistics(end["model"])["model_stats"][0]


def computing_ns(end):
    """Executions and compute time by executed batch size."""
    return {
        batch["batch_size"]: (batch["compute_infer"]["count"], batch["compute_infer"]["ns"])
        for batch in statistics(end)["batch_stats"]
    }


def test_it_is_named_emulated_wherever_it_appears(emulated):
    about = {key: emulated.ready[key] for key in ("model", "weights", "weights_sha256")}
    assert about == {"model": "emulated", "weights": "none (emulated)", "weights_sha256": ""}
    assert list(emulated.endpoints) == ["emulated"]
    end = emulated.endpoints["emulated"]
    assert end["model"] == "emulated"
    assert end["emulated"] == "40 ms + 0 ms an image, 300 ms more for the first of a batch size"
    assert end["started_ns"] > end["loaded_ns"] > 0


def test_the_first_of_a_batch_size_is_cold_and_the_second_is_not(emulated):
    end = emulated.endpoints["emulated"]
    first = ask(end, 5)
    assert first.shape == (5, 512)
    assert np.abs(np.linalg.norm(first, axis=1) - 1).max() < 1e-6
    executions, cold_ns = computing_ns(end)[5]
    assert executions == 1
    assert cold_ns >= 340e6
    ask(end, 5)
    executions, both_ns = computing_ns(end)[5]
    assert executions == 2
    assert 40e6 <= both_ns - cold_ns < 340e6


def test_requests_at_the_same_time_share_executions(emulated, until):
    end = emulated.endpoints["emulated"]
    before = statistics(end)
    # One client, connected before: on a busy machine, making eight takes longer than the executions do.
    with tritonclient.grpc.InferenceServerClient(end["grpc"]) as client, ThreadPoolExecutor(16) as pool:
        assert client.is_model_ready(end["model"])
        tensor = tritonclient.grpc.InferInput("input", (1, 3, 224, 224), "FP32")
        tensor.set_data_from_numpy(np.zeros((1, 3, 224, 224), np.float32))
        for reply in pool.map(lambda _: client.infer(end["model"], [tensor]), range(16)):
            assert reply.as_numpy("embedding").shape == (1, 512)
    # Triton counts an execution a little after it has answered.
    until(lambda: statistics(end)["inference_count"] - before["inference_count"] == 16)
    after = statistics(end)
    assert after["execution_count"] - before["execution_count"] < 16
    for executions, computed_ns in computing_ns(end).values():
        assert computed_ns >= 40e6 * executions


def test_instances_and_queue_delay_are_set_for_the_model_and_not_for_null(traced):
    with tritonclient.http.InferenceServerClient(traced["http"]) as client:
        configs = {model: client.get_model_config(model) for model in ("emulated", "null")}
    assert [config["instance_group"][0]["count"] for config in configs.values()] == [2, 1]
    assert configs["emulated"]["dynamic_batching"]["max_queue_delay_microseconds"] == 500
    assert "dynamic_batching" not in configs["null"]
    assert configs["emulated"]["parameters"]["base_ms"] == {"string_value": "3.11"}


def test_a_trace_is_written_once_its_settings_are_told_again(traced, until):
    embed_triton(tritonclient.http, traced["http"], "null", np.zeros((1, 3, 224, 224), np.float32))
    ask(traced, 2, tritonclient.grpc)
    setting = urllib.request.Request(
        f"http://{traced['http']}/v2/trace/setting", headers={"control": "0123456789abcdef"}
    )
    with urllib.request.urlopen(setting) as reply:
        settings = json.load(reply)
    assert settings["trace_level"] == ["TIMESTAMPS"]
    again = json.dumps({"log_frequency": settings["log_frequency"]}).encode()
    urllib.request.urlopen(setting, again).close()
    # Not before the server has let go of the last request, which is after the answer.
    until(lambda: read_json(Path(f"{traced['trace']}.0")))
    records = read_json(Path(f"{traced['trace']}.0"))
    names = {record["id"]: record["model_name"] for record in records if "model_name" in record}
    assert sorted(names.values()) == ["emulated", "null"]
    told = {(record["id"], time["name"]) for record in records for time in record.get("timestamps", ())}
    for number, model in names.items():
        edge = "HTTP_RECV_START" if model == "null" else "GRPC_WAITREAD_END"
        for name in (edge, "QUEUE_START", "COMPUTE_START", "COMPUTE_END"):
            assert (number, name) in told


def test_thousands_of_answers_leave_nothing_behind(emulated):
    """Each is handed to tritonserver by its address, to be let go once it is copied: 8 MB, were they kept."""
    end, log = emulated.endpoints["emulated"], Path(emulated.ready["logs"], "emulated.log")
    (stub,) = (one for one in emulated.family if "/null/1/model.py" in " ".join(one.cmdline()))
    pixels = np.zeros((1, 3, 224, 224), np.float32)

    def send(count):
        with tritonclient.http.InferenceServerClient(end["http"]) as client:
            tensor = tritonclient.http.InferInput("input", pixels.shape, "FP32")
            tensor.set_data_from_numpy(pixels)
            for _ in range(count):
                answer = client.infer("null", [tensor]).as_numpy("embedding")
        return answer

    send(500)
    before = stub.memory_info().rss
    assert np.abs(send(4_000) - 512**-0.5).max() < 1e-7
    assert stub.memory_info().rss - before < 2 << 20
    said = log.read_text()
    assert "Traceback" not in said
    assert "PyCapsule" not in said
