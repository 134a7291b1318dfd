"""The plan of each embedded server: its command, its ports, its addresses, its way to say it is ready."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from server import shared_memory
from server.export import onnx_path
from server.fleet import Plan
from server.net import choose_ports, get, reachable
from server.repository import make_backends, make_repository, triton_command, triton_environment
from server.settings import Settings
from server.spec import CACHE, ModelSpec
from server.wheel import Wheel

PYTORCH_PORT = 8002
# HTTP, gRPC, metrics.
TRITON_PORTS = {"onnx": (8010, 8011, 8012), "openvino": (8020, 8021, 8022)}
TRITON_MODELS = {"onnx": "openclip_vit_b32", "openvino": "openclip_vit_b32_openvino"}


@dataclass(frozen=True)
class Hosting:
    """What the servers of one `up` share: the address they listen on and Triton's queue delay."""

    host: str
    queue_delay_us: int


def pytorch_plan(spec: ModelSpec, hosting: Hosting) -> Plan:
    """The PyTorch service, which takes its other settings from our environment."""
    (port,) = choose_ports(hosting.host, [PYTORCH_PORT])
    address = f"{reachable(hosting.host)}:{port}"
    settings = Settings(spec.name, spec.pretrained, spec.seed, host=hosting.host, port=port)
    named = ("MODEL", "PRETRAINED", "SEED", "HOST", "PORT")
    environ = {
        **os.environ,
        **{key: settings.to_env()[key] for key in (f"INFERSWARM_{name}" for name in named)},
    }
    return Plan(
        "pytorch",
        [sys.executable, "-m", "server", "service"],
        environ,
        {"url": f"http://{address}"},
        lambda: _answers(address, "/readyz"),
    )


def triton_plan(engine: str, spec: ModelSpec, wheel: Wheel, hosting: Hosting, weights_sha256: str) -> Plan:
    """A tritonserver with one model, run by `onnx` or `openvino`."""
    ports = choose_ports(hosting.host, list(TRITON_PORTS[engine]))
    http, grpc, metrics = (f"{reachable(hosting.host)}:{port}" for port in ports)
    model = TRITON_MODELS[engine]
    parameters = {
        "onnx_path": str(onnx_path(spec)),
        "cache_dir": str(CACHE / "openvino"),
        "model": spec.name,
        "weights": spec.weights,
        "weights_sha256": weights_sha256,
    }
    repository = make_repository(engine, hosting.queue_delay_us, parameters)
    prefix = shared_memory.prefix_for(engine)
    return Plan(
        engine,
        triton_command(wheel, repository, make_backends(wheel), hosting.host, ports, prefix),
        triton_environment(wheel, os.environ),
        {"http": http, "grpc": grpc, "metrics": f"http://{metrics}/metrics", "model": model},
        lambda: _answers(http, "/v2/health/ready") and _answers(http, f"/v2/models/{model}/ready"),
        prefix,
    )


def _answers(address: str, path: str) -> bool:
    reply = get(address, path)
    return reply is not None and reply[0] == 200
