"""Real servers, started as a caller starts them."""

import base64
import io
import json
import os
import signal
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from PIL import Image
from skimage import data

from server.models.preprocess import preprocess
from tests.server.running import DEADLINE_S, STOP_S, embed_triton, up

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """All three servers, with a queue delay of their own."""
    with up("--queue-delay-us", "2000", log_dir=tmp_path_factory.mktemp("logs")) as running:
        yield running


@pytest.fixture(scope="module")
def photograph():
    """A JPEG file."""
    buffer = io.BytesIO()
    Image.fromarray(data.astronaut()).save(buffer, "JPEG")
    return buffer.getvalue()


def embed_pytorch(endpoint, jpeg):
    body = json.dumps({"images": [base64.b64encode(jpeg).decode()]}).encode()
    with urllib.request.urlopen(endpoint["url"] + "/embed", body) as reply:
        return np.array(json.load(reply)["embeddings"], np.float32)


def test_every_backend_gives_the_same_embedding(servers, photograph):
    ends = servers.endpoints
    pixels = preprocess(Image.open(io.BytesIO(photograph)))[None]
    found = [embed_pytorch(ends["pytorch"], photograph)]
    for engine in ("onnx", "openvino"):
        for module, kind in ((tritonclient.http, "http"), (tritonclient.grpc, "grpc")):
            end = ends[engine]
            found.append(embed_triton(module, end[kind], end["model"], pixels))
    embeddings = np.concatenate(found)
    assert embeddings.shape == (5, 512)
    assert np.abs(np.linalg.norm(embeddings, axis=1) - 1).max() < 1e-5
    assert (embeddings @ embeddings.T).min() >= 0.999


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_batch_of_any_size_gives_what_single_images_give(servers, engine):
    end = servers.endpoints[engine]
    pixels = np.random.default_rng(0).standard_normal((6, 3, 224, 224), dtype=np.float32)
    together = embed_triton(tritonclient.http, end["http"], end["model"], pixels)
    for one, expected in zip(pixels, together, strict=True):
        alone = embed_triton(tritonclient.http, end["http"], end["model"], one[None])
        assert np.abs(alone[0] - expected).max() < 1e-4
    # And a model that computes nothing lies beside it.
    assert embed_triton(tritonclient.grpc, end["grpc"], "null", pixels).shape == (6, 512)


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_model_says_what_it_holds_and_counts_what_it_does(servers, engine):
    end = servers.endpoints[engine]
    with tritonclient.http.InferenceServerClient(end["http"]) as client:
        config = client.get_model_config(end["model"])
        (statistics,) = client.get_inference_statistics(end["model"])["model_stats"]
    assert config["parameters"]["weights"] == {"string_value": "random (seed 0)"}
    assert config["parameters"]["weights_sha256"] == {"string_value": servers.ready["weights_sha256"]}
    assert config["dynamic_batching"]["preferred_batch_size"] == [4, 8, 16, 32]
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 2000
    assert config["max_batch_size"] == 32
    assert "response_cache" not in config or not config["response_cache"]["enable"]
    assert config["instance_group"][0]["count"] == 1
    assert set(statistics["inference_stats"]) >= {"queue", "compute_infer", "success"}
    with urllib.request.urlopen(end["metrics"]) as reply:
        assert f'nv_inference_request_success{{model="{end["model"]}",version="1"}}' in reply.read().decode()


def test_the_pytorch_service_holds_the_same_weights(servers):
    with urllib.request.urlopen(servers.endpoints["pytorch"]["url"] + "/readyz") as reply:
        status = json.load(reply)
    assert status["weights_sha256"] == servers.ready["weights_sha256"]
    assert (status["model"], status["weights"], status["dim"]) == ("ViT-B-32", "random (seed 0)", 512)
    provider = servers.ready["provider"]
    assert servers.endpoints["onnx"]["provider"] == provider
    assert status["device"] == {"CPUExecutionProvider": "cpu", "CUDAExecutionProvider": "cuda"}[provider]


def test_the_services_floor_answers_as_much_without_its_model(servers, photograph):
    url = servers.endpoints["pytorch"]["url"]
    body = json.dumps({"images": [base64.b64encode(photograph).decode()] * 3}).encode()
    replies = {}
    for path in ("/embed", "/null"):
        with urllib.request.urlopen(url + path, body) as reply:
            replies[path] = reply.read()
    assert len(replies["/null"]) == pytest.approx(len(replies["/embed"]), rel=0.1)
    floor = json.loads(replies["/null"])
    assert (floor["model"], floor["dim"]) == ("null", 512)
    embeddings = np.array(floor["embeddings"])
    assert embeddings.shape == (3, 512)
    assert np.abs(np.linalg.norm(embeddings, axis=1) - 1).max() < 1e-6


def test_every_server_says_what_its_cold_start_took(servers):
    for name, end in servers.endpoints.items():
        assert end["started_ns"] > 0
        assert end["loaded_ns"] > 0
        # A tritonserver loads before it answers, and the service after.
        assert name == "pytorch" or end["loaded_ns"] < end["started_ns"]
        assert "emulated" not in end
        assert "trace" not in end


def test_a_second_set_takes_free_ports_and_ends_with_stdin(servers, tmp_path):
    with up("--only", "onnx", log_dir=tmp_path) as second:
        assert list(second.endpoints) == ["onnx"]
        assert not set(second.addresses()) & set(servers.addresses())
        second.process.stdin.close()
        assert second.process.wait(STOP_S) == 0
        second.assert_nothing_is_left()


def test_two_started_at_once_have_ports_of_their_own_and_a_signal_stops_each(tmp_path):
    def run_until(number):
        with up("--only", "onnx", log_dir=tmp_path / number.name) as running:
            both_are_up.wait(DEADLINE_S)
            os.kill(running.process.pid, number)
            assert running.process.wait(STOP_S) == 0
            running.assert_nothing_is_left()
            return set(running.addresses())

    both_are_up = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run_until, [signal.SIGTERM, signal.SIGINT])
    assert len(first | second) == 6


def test_nothing_outlives_a_killed_supervisor(tmp_path):
    with up("--only", "onnx", log_dir=tmp_path) as running:
        running.process.kill()
        running.process.wait()
        running.assert_nothing_is_left()


def test_a_server_that_dies_is_reported_and_the_others_go_on(servers, photograph):
    os.kill(servers.endpoints["openvino"]["pid"], signal.SIGABRT)
    died = servers.event("died")
    assert (died["server"], died["exit"]) == ("openvino", -signal.SIGABRT)
    assert "GRPCInferenceService" in died["log_tail"]
    assert list(Path("/dev/shm").glob(f"inferswarm_{servers.process.pid}_openvino_*")) == []
    assert embed_pytorch(servers.endpoints["pytorch"], photograph).shape == (1, 512)
