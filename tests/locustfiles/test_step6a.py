"""Step 6A asks each backend over HTTP, alone, at the published batches."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import itertools

import pytest

from locustfiles.step6a import Step6a
from swarm.targets.endpoints import chosen, endpoints_from_ready, servers_for
from tests.swarm.options.test_parse import options

READY = {
    "endpoints": {
        "pytorch": {"url": "http://127.0.0.1:8002"},
        "onnx": {"http": "127.0.0.1:8010", "grpc": "127.0.0.1:8011", "model": "openclip_vit_b32"},
        "openvino": {"http": "127.0.0.1:8020", "grpc": "127.0.0.1:8021", "model": "openclip_vit_b32_trt"},
    }
}
NAMES = ("pytorch-http", "onnx-http", "openvino-http")


@pytest.mark.parametrize(("size", "batches"), [("quick", (1, 4, 8, 32)), ("full", (1, 4, 8, 16, 32))])
def test_every_backend_at_every_batch_with_one_user(size: str, batches: tuple[int, ...]) -> None:
    kinds = chosen(Step6a.endpoints, options())
    endpoints = endpoints_from_ready(READY, kinds)
    cells = Step6a().cells(endpoints, Step6a.sizes[size])
    expected = [f"{name}/b{batch}/c1" for name, batch in itertools.product(NAMES, batches)]
    assert sorted(cell.name for cell in cells) == sorted(expected)


def test_it_starts_the_three_servers_and_takes_a_tensorrt_by_url_in_the_place_of_openvino() -> None:
    kinds = chosen(Step6a.endpoints, options())
    assert servers_for(kinds, emulated=False) == (["pytorch", "onnx", "compiled"], ["fp32"])
    assert "trt-http" in [kind.name for kind in kinds]
    assert not [kind.name for kind in kinds if kind.protocol == "grpc"]
