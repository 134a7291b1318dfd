"""A service over real HTTP, with a model that answers with the colour of each image."""

import base64
import io
import json
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from server.service.app import create_app
from server.service.http_server import configured
from server.settings import Settings
from tests import processes
from tests.server.colour import DEADLINE_S, ColourEmbedder
from tests.server.running import Asked


class Client(Asked):
    """One service under test."""

    def __init__(self, port, embedder):
        super().__init__(port)
        self.embedder = embedder

    def embed(self, colours):
        status, headers, reply = self.request("POST", "/embed", body_of(colours))
        return status, headers, json.loads(reply)

    def body(self, colours):
        return body_of(colours)

    def metric(self, name):
        text = self.request("GET", "/metrics")[2].decode()
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return next(sample.value for sample in samples if sample.name == name)


def body_of(colours):
    return json.dumps({"images": [jpeg(colour) for colour in colours]})


def jpeg(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (230, 240), colour).save(buffer, "JPEG", quality=100)
    return base64.b64encode(buffer.getvalue()).decode()


def wait_until(condition):
    processes.wait_until(condition, DEADLINE_S)


@contextmanager
def serve(embedder, settings=None, ready=True):
    settings = settings or Settings()
    config = configured(create_app(embedder, settings), settings)
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        client = Client(server.servers[0].sockets[0].getsockname()[1], embedder)
        wait_until(lambda: not ready or client.request("GET", "/readyz")[0] == 200)
        yield client
    finally:
        embedder.gate.set()
        embedder.load_gate.set()
        server.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@pytest.fixture
def until():
    """Waits for a condition, and fails where it does not come."""
    return wait_until


@pytest.fixture
def embedder():
    return ColourEmbedder()


@pytest.fixture
def serving():
    """Starts a service: `with serving(embedder, settings) as client`, which is ready, or may be."""
    return serve


@pytest.fixture
def client(embedder):
    """A service that is ready, with small limits."""
    with serve(embedder, Settings(max_batch=4, max_body_bytes=100_000, max_pixels=100_000)) as client:
        yield client
