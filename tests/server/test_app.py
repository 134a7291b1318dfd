"""The service over real HTTP, with a model that answers with the colour of each image."""

import base64
import http.client
import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import uvicorn
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from server.app import create_app
from server.gpu import Gpu
from server.metrics import Metrics
from server.preprocess import MEAN, STD
from server.settings import Settings

DEADLINE_S = 20


class ColourEmbedder:
    """An embedding is the mean colour; `gate` holds every inference until it is set."""

    model, weights, weights_sha256, dim, device = "colour", "none", "0", 3, "cpu"

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.load_gate = threading.Event()
        self.load_gate.set()
        self.entered = threading.Event()

    def load(self):
        assert self.load_gate.wait(DEADLINE_S)

    def embed(self, pixels):
        self.entered.set()
        assert self.gate.wait(DEADLINE_S)
        return (pixels.mean(axis=(2, 3)) * np.float32(STD) + np.float32(MEAN)).astype(np.float32)


class Client:
    """One service under test."""

    def __init__(self, port, embedder):
        self.port = port
        self.embedder = embedder

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            connection.request(method, path, body)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def embed(self, colours):
        body = json.dumps({"images": [jpeg(colour) for colour in colours]})
        status, headers, reply = self.request("POST", "/embed", body)
        return status, headers, json.loads(reply)

    def metric(self, name):
        text = self.request("GET", "/metrics")[2].decode()
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return next(sample.value for sample in samples if sample.name == name)


def jpeg(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (230, 240), colour).save(buffer, "JPEG", quality=100)
    return base64.b64encode(buffer.getvalue()).decode()


def colours_of(reply):
    return [[round(255 * value) for value in embedding] for embedding in reply["embeddings"]]


def until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def serving(embedder, settings):
    config = uvicorn.Config(create_app(embedder, settings), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield Client(server.servers[0].sockets[0].getsockname()[1], embedder)
    finally:
        embedder.gate.set()
        embedder.load_gate.set()
        server.should_exit = True
        thread.join(DEADLINE_S)


@pytest.fixture
def client():
    with serving(
        ColourEmbedder(), Settings(max_batch=4, max_body_bytes=100_000, max_pixels=100_000)
    ) as client:
        until(lambda: client.request("GET", "/readyz")[0] == 200)
        yield client


def near(found, expected):
    return np.abs(np.array(found) - np.array(expected)).max() <= 2


def test_embeddings_come_in_the_order_sent_and_the_time_is_accounted_for(client):
    colours = [(250, 10, 20), (10, 250, 20), (10, 20, 250), (128, 128, 128)]
    status, headers, reply = client.embed(colours)
    assert status == 200
    assert near(colours_of(reply), colours)
    assert (reply["model"], reply["dim"]) == ("colour", 3)
    timing = dict(part.split(";dur=") for part in headers["Server-Timing"].split(", "))
    assert list(timing) == ["decode", "preprocess", "queue", "compute"]
    assert all(float(value) >= 0 for value in timing.values())
    assert float(timing["decode"]) > 0


def test_requests_at_the_same_time_are_not_mixed(client):
    colours = [(10 * i, 250 - 10 * i, 77) for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda colour: client.embed([colour, colour]), colours))
    for colour, (status, _, reply) in zip(colours, replies, strict=True):
        assert status == 200
        assert near(colours_of(reply), [colour, colour])


def test_the_service_answers_while_it_computes_and_queues(client):
    client.embedder.gate.clear()
    client.embedder.entered.clear()
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(client.embed, [(1, 2, 3)]) for _ in range(3)]
        until(client.embedder.entered.is_set)
        assert client.request("GET", "/healthz")[::2] == (200, b'{"status":"alive"}')
        until(lambda: client.metric("inferswarm_in_flight") == 3)
        client.embedder.gate.set()
        assert [request.result()[0] for request in slow] == [200] * 3
    assert client.metric("inferswarm_in_flight") == 0


def test_what_a_client_gets_wrong_is_said_in_a_sentence_and_the_service_lives(client):
    bomb = io.BytesIO()
    Image.new("1", (5000, 5000)).save(bomb, "PNG")
    wrong = [
        (b"hello", 400, 'the body is not JSON: send {"images": [base64 JPEG, ...]}'),
        (b'{"images": ["?"]}', 400, "images[0] is not base64"),
        (b'{"images": ["aGVsbG8="]}', 400, "images[0] is not a whole JPEG, PNG or WebP image"),
        (b'{"images": []}', 400, "`images` is empty: send at least one image"),
        (b'{"images": ["", "", "", "", ""]}', 413, "`images` holds 5 images: send at most 4 a request"),
        (
            b'{"images": ["%s"]}' % base64.b64encode(bomb.getvalue()),
            413,
            "images[0] has too many pixels, 5000 x 5000: send at most 100,000",
        ),
        (b" " * 100_001, 413, "the body is longer than 100,000 bytes: send fewer images a request"),
    ]
    for body, status, sentence in wrong:
        found, _, reply = client.request("POST", "/embed", body)
        assert (found, json.loads(reply)) == (status, {"detail": sentence})
    assert client.metric("inferswarm_failures_total") == len(wrong)
    status, _, reply = client.embed([(9, 99, 199)])
    assert status == 200
    assert near(colours_of(reply), [(9, 99, 199)])


def test_a_long_body_is_refused_without_a_content_length(client):
    chunks = iter([b" " * 40_000] * 4)
    status, _, reply = client.request("POST", "/embed", chunks)
    assert status == 413
    assert json.loads(reply)["detail"].startswith("the body is longer than 100,000 bytes")


def test_metrics_count_requests_images_and_seconds(client):
    for images in (1, 3):
        assert client.embed([(5, 5, 5)] * images)[0] == 200
    client.request("POST", "/embed", b"{}")
    assert client.metric("inferswarm_requests_total") == 3
    assert client.metric("inferswarm_failures_total") == 1
    assert client.metric("inferswarm_images_total") == 4
    for part in ("decode", "preprocess", "queue", "compute"):
        assert client.metric(f"inferswarm_{part}_seconds_count") == 2
        assert 0 <= client.metric(f"inferswarm_{part}_seconds_sum") < DEADLINE_S


def test_ready_only_once_the_model_is_loaded():
    embedder = ColourEmbedder()
    embedder.load_gate.clear()
    with serving(embedder, Settings()) as client:
        assert client.request("GET", "/healthz")[0] == 200
        status, _, body = client.request("GET", "/readyz")
        assert (status, json.loads(body)["status"]) == (503, "loading")
        status, headers, reply = client.embed([(1, 1, 1)])
        assert (status, headers["Retry-After"]) == (503, "1")
        assert reply["detail"] == "the model is still loading: try again when GET /readyz answers 200"
        embedder.load_gate.set()
        until(lambda: client.request("GET", "/readyz")[0] == 200)
        assert json.loads(client.request("GET", "/readyz")[2]) == {
            "status": "ready",
            "model": "colour",
            "weights": "none",
            "weights_sha256": "0",
            "dim": 3,
            "device": "cpu",
        }


def test_gpu_gauges_leave_out_what_a_gpu_does_not_tell():
    gpu = Gpu(0, "GPU", 55.0, 10.0, 80.0, None, 1980.0, 40.0)
    text = Metrics(gpus=lambda: [gpu]).render().decode()
    lines = [line for line in text.splitlines() if line.startswith("inferswarm_gpu_")]
    assert lines == [
        'inferswarm_gpu_utilisation_pct{gpu="0"} 55.0',
        'inferswarm_gpu_memory_used_bytes{gpu="0"} 10.0',
        'inferswarm_gpu_sm_clock_mhz{gpu="0"} 1980.0',
        'inferswarm_gpu_temperature_c{gpu="0"} 40.0',
    ]


def test_gpu_info_lists_gpus(client):
    status, _, body = client.request("GET", "/gpu-info")
    assert status == 200
    assert isinstance(json.loads(body)["gpus"], list)
