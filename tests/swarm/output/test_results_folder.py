"""What a ledger's header says of each endpoint."""

from locust.argument_parser import get_empty_argument_parser

from typing import Any

from swarm.options.model import Options
from swarm.options.parse import add_options, resolve
from swarm.output.results_folder import about
from swarm.targets.endpoints import FIVE, chosen, endpoints_from_ready
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.preparation import PRESETS

READY: dict[str, Any] = {
    "model": "ViT-B-32",
    "weights": "random, seed 0",
    "endpoints": {
        "pytorch": {"url": "http://127.0.0.1:8002", "started_ns": 3, "loaded_ns": 2},
        "onnx": {"http": "127.0.0.1:8010", "grpc": "127.0.0.1:8011", "model": "clip", "started_ns": 5},
    },
}
EMULATED: dict[str, Any] = {
    "endpoints": {
        "emulated": {
            "http": "127.0.0.1:8030",
            "grpc": "127.0.0.1:8031",
            "model": "emulated",
            "started_ns": 7,
            "loaded_ns": None,
            "emulated": "a100: 3.11 ms + 1.29 ms an image",
        },
    },
}


SPACE = {"space": "openclip_vit_b32", "dimension": 512}
FILES = {
    "codec": "embed",
    "server": "pytorch",
    "inputs": ["images BYTES [1] jpeg"],
    "output": "embeddings",
    **SPACE,
}
TENSORS = {
    "inputs": ["input FP32 [3, 224, 224] picture"],
    "prepare": "clip",
    "output": "embedding",
    **SPACE,
}


def options(*arguments: str) -> Options:
    parser = get_empty_argument_parser(default_config_files=[])
    add_options(parser)
    return resolve(parser.parse_args(list(arguments)))


FIVE_WAYS = chosen(FIVE, options())


def told(ready: dict[str, Any], name: str) -> dict[str, Any]:
    (endpoint,) = [e for e in endpoints_from_ready(ready, FIVE_WAYS) if e.name == name]
    return about(endpoint, options(), ready, {})


def test_embedded_servers_tell_how_long_they_took() -> None:
    assert told(READY, "pytorch-http") == {
        "url": "127.0.0.1:8002",
        "model": "ViT-B-32",
        "weights": "random, seed 0",
        "embedded": True,
        **FILES,
        "started_ns": 3,
        "loaded_ns": 2,
    }
    assert told(READY, "onnx-grpc") == {
        "url": "127.0.0.1:8011",
        "model": "clip",
        "weights": "random, seed 0",
        "embedded": True,
        "codec": "v2-grpc",
        "server": "onnx",
        **TENSORS,
        "started_ns": 5,
    }


def test_what_is_emulated_says_so_and_has_no_weights() -> None:
    assert told(EMULATED, "emulated-http") == {
        "url": "127.0.0.1:8030",
        "model": "emulated",
        "weights": "none",
        "embedded": True,
        "codec": "v2-binary",
        "server": "emulated",
        **TENSORS,
        "started_ns": 7,
        "emulated": "a100: 3.11 ms + 1.29 ms an image",
    }


def test_a_floor_says_whose_it_is_and_nothing_of_its_servers_model() -> None:
    pytorch, onnx, _ = endpoints_from_ready(READY, FIVE_WAYS)
    http = {"codec": "v2-binary", "server": "onnx", **TENSORS}
    for endpoint, asked in ((pytorch, FILES), (onnx, http)):
        assert about(endpoint.floor(), options(), READY, {}) == {
            "url": endpoint.address,
            "model": "null",
            "weights": "none",
            "embedded": True,
            **asked,
            "floor_of": endpoint.name,
        }
    (emulated, _) = endpoints_from_ready(EMULATED, FIVE_WAYS)
    assert "emulated" not in about(emulated.floor(), options(), EMULATED, {})


def by_url(stated: dict[str, str]) -> dict[str, Any]:
    (endpoint,) = endpoints_from_ready({"endpoints": {"pytorch": {"url": "http://gpu:8002"}}}, FIVE_WAYS)
    return about(endpoint, options("--pytorch-url", "gpu:8002"), {}, stated)


def test_a_server_by_url_need_not_tell() -> None:
    expected = {"url": "gpu:8002", "model": "", "weights": "unknown", "embedded": False}
    assert by_url({}) == {**expected, **FILES}


def test_a_server_by_url_that_tells() -> None:
    assert by_url({"model": "ViT-B-32", "weights": "random, seed 0", "emulated": "a100"}) == {
        "url": "gpu:8002",
        "model": "ViT-B-32",
        "weights": "random, seed 0",
        "embedded": False,
        **FILES,
        "emulated": "a100",
    }


def test_an_endpoint_of_any_model_says_what_it_takes_and_what_was_guessed() -> None:
    contract = Contract(
        (Input("pixel_values", "FP16", (384, 384, 3), "picture", "NHWC"),),
        PRESETS["siglip"],
        "image_embeds",
        768,
        max_batch=8,
        guesses=("prepared as siglip",),
    )
    endpoint = Endpoint(
        "new", "triton", "grpc", "fp16", "gpu:1", "siglip", codec="mine.py", codec_sha256="ab",
        contract=contract, server="new server", space="siglip", stands_for="trt",
    )  # fmt: skip
    assert about(endpoint, options("--endpoint", "new=triton+grpc://gpu:1/siglip"), {}, {}) == {
        "url": "gpu:1",
        "model": "siglip",
        "weights": "unknown",
        "embedded": False,
        "codec": "mine.py",
        "codec_sha256": "ab",
        "server": "new server",
        "space": "siglip",
        "inputs": ["pixel_values FP16 [384, 384, 3] picture"],
        "prepare": "siglip",
        "output": "image_embeds",
        "dimension": 768,
        "max_batch": 8,
        "guesses": ["prepared as siglip"],
        "stands_for": "trt",
    }
