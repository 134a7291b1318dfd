"""All ways to one model on real servers: Triton with every payload over both protocols, and the gateway."""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from swarm.targets.endpoints import chosen, endpoints_from_ready
from tests.server.running import up
from tests.swarm.options.test_parse import options
from users import Endpoint
from users.backends.asking import AGAIN_S, read_counters, read_serving
from users.backends.registry import codec_of
from users.errors import RequestError
from users.inputs.images import ImageSet
from users.inputs.pictures import encode, photograph_crops, photograph_folder
from users.transport.transports import client

pytestmark = pytest.mark.system

GATEWAY, TENSOR_HTTP, TENSOR_GRPC = "gateway-http", "onnx-http", "onnx-grpc"
FILES_HTTP, FILES_GRPC = "onnx-jpeg-http", "onnx-jpeg-grpc"
PIXELS_HTTP, PIXELS_GRPC = "onnx-uint8-http", "onnx-uint8-grpc"
WAYS = (GATEWAY, TENSOR_HTTP, TENSOR_GRPC, FILES_HTTP, FILES_GRPC, PIXELS_HTTP, PIXELS_GRPC)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A Triton that takes every payload, and a gateway before it."""
    options = ("--only", "gateway", "--payloads", "fp32,jpeg,uint8", "--queue-delay-us", "0")
    with up(*options, log_dir=tmp_path_factory.mktemp("logs")) as running:
        yield running


@pytest.fixture(scope="module")
def images() -> ImageSet:
    """Three photographs, the last one larger than the model's square."""
    crops = photograph_crops(photograph_folder() / "coffee.png")[:2]
    with Image.open(photograph_folder() / "rocket.jpg") as whole:
        return ImageSet(tuple(encode(image, 90) for image in (*crops, whole.convert("RGB"))), "test")


def endpoint(servers, name: str) -> Endpoint:
    (made,) = endpoints_from_ready({"endpoints": servers.endpoints}, chosen((), options("--endpoints", name)))
    return made


def embed(servers, name: str, images: ImageSet, indices: tuple[int, ...]):
    codec = codec_of(endpoint(servers, name))
    with client(codec, 30) as user:
        return user.send(codec.prepare(images, indices))


def counters(asked: Endpoint) -> dict:
    """Once two readings agree: Triton counts a request after it has answered it."""
    last, now = None, read_counters(asked)["counters"]
    while now != last:
        time.sleep(AGAIN_S)
        last, now = now, read_counters(asked)["counters"]
    return now


def growth(before: dict, after: dict) -> dict:
    return {name: after[name] - before[name] for name in before if name not in ("batches", "steps")}


def test_what_is_served_is_said(servers) -> None:
    onnx, gateway = servers.endpoints["onnx"], servers.endpoints["gateway"]
    assert onnx["payloads"] == ["fp32", "jpeg", "uint8"]
    assert onnx["loaded_ns"] > 0
    assert gateway["upstream"] == "onnx"
    with urllib.request.urlopen(gateway["url"] + "/readyz") as reply:
        told = json.load(reply)
    assert (told["model"], told["weights"]) == ("ViT-B-32", "random (seed 0)")
    assert told["weights_sha256"] == servers.ready["weights_sha256"]
    assert told["upstream"] == {"address": onnx["grpc"], "model": onnx["model"]}
    assert "instances" not in told


def test_every_way_gives_the_same_embeddings(servers, images: ImageSet) -> None:
    found = np.stack([embed(servers, way, images, (0, 1, 2)).embeddings for way in WAYS])
    assert found.shape == (7, 3, 512)
    for image in range(3):
        assert (found[:, image] @ found[:, image].T).min() >= 0.9999
    assert found[0, 0] @ found[0, 1] < 0.9999, "or it would not matter which image is which"


def test_the_gateway_names_its_parts(servers, images: ImageSet) -> None:
    before = counters(endpoint(servers, GATEWAY))
    stated = embed(servers, GATEWAY, images, (0, 1)).server_ns
    grown = growth(before, counters(endpoint(servers, GATEWAY)))
    assert list(stated) == ["decode", "preprocess", "queue", "upstream"]
    assert stated["upstream"] > stated["decode"] > 0
    assert (grown["requests"], grown["successes"], grown["images"]) == (1, 1, 2)
    assert grown["upstream_ns"] == pytest.approx(stated["upstream"], abs=1_000)
    assert not {"compute_ns", "executions"} & set(grown)


@pytest.mark.parametrize("name", [FILES_HTTP, FILES_GRPC])
def test_a_broken_file_fails_alone(servers, images: ImageSet, name: str) -> None:
    broken = replace(images, jpegs=(*images.jpegs, images.jpegs[0][:1000], b"no picture", b""))
    asked = endpoint(servers, name)
    before = counters(asked)

    def one(index: int) -> str:
        try:
            return str(embed(servers, name, broken, (0, index)).embeddings.shape)
        except RequestError as error:
            return str(error)

    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(one, (1, 3, 2, 4, 5, 1)))
    assert [said[index] for index in (0, 2, 5)] == ["(2, 512)"] * 3
    for index in (1, 3, 4):
        assert "image 1 of the request is not a complete JPEG file" in said[index]
    grown = growth(before, counters(asked))
    assert (grown["requests"], grown["successes"], grown["images"]) == (6, 3, 6)


@pytest.mark.parametrize("name", [FILES_HTTP, FILES_GRPC, PIXELS_HTTP, PIXELS_GRPC])
def test_an_ensemble_is_counted_with_its_steps(servers, images: ImageSet, name: str) -> None:
    asked = endpoint(servers, name)
    before = counters(asked)
    for indices in ((0,), (0, 1, 2), (2,)):
        embed(servers, name, images, indices)
    after = counters(asked)
    grown = growth(before, after)
    counts = ("requests", "successes", "images", "executions")
    assert [grown.pop(name) for name in counts] == [3, 3, 5, 3]
    runs = {size: after["batches"][size][0] - before["batches"].get(size, [0])[0] for size in ("1", "3")}
    assert runs == {"1": 2, "3": 1}
    step = "decode_ns" if asked.payload == "jpeg" else "preprocess_ns"
    assert set(grown) == {"queue_ns", "input_ns", "compute_ns", "output_ns", step}
    assert grown["compute_ns"] > grown[step] > 0
    first, model = after["steps"]
    for name in (first, model):
        counted = growth(before["steps"][name], after["steps"][name])
        assert (counted["successes"], counted["executions"]) == (3, 3)
        # Alone in an execution, a request is charged what it took.
        assert counted["executing_ns"] == pytest.approx(counted["work_ns"], rel=0.01)
    told = {"instances": 1, "max_batch": 32, "batching": True, "batching_delay_ns": 0}
    assert read_serving(asked) == told | {"steps": {first: 1, model: 1}}


def test_others_requests_to_the_model_do_not_go_unnoticed(servers, images: ImageSet) -> None:
    asked = endpoint(servers, FILES_GRPC)
    before = counters(asked)
    embed(servers, FILES_GRPC, images, (0,))
    embed(servers, TENSOR_GRPC, images, (0,))
    assert growth(before, counters(asked))["requests"] == 2


def test_the_gateway_has_several_calls_under_way(servers, images: ImageSet) -> None:
    """Triton joins them, which it could not if one came after the other."""
    model = endpoint(servers, TENSOR_GRPC)
    before = counters(model)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: embed(servers, GATEWAY, images, (0,)), range(8)))
    grown = growth(before, counters(model))
    assert grown["requests"] == 8
    assert grown["executions"] < 8


def test_an_upstream_that_has_gone(servers, images: ImageSet) -> None:
    """The last test: it ends the tritonserver."""
    onnx = servers.endpoints["onnx"]
    os.kill(onnx["pid"], signal.SIGKILL)
    servers.event("died")
    with pytest.raises(RequestError) as caught:
        embed(servers, GATEWAY, images, (0,))
    assert "502" in str(caught.value)
    assert f"the upstream {onnx['grpc']} failed (unavailable)" in str(caught.value)
