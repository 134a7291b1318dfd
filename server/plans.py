"""The plan of each embedded server: its command, its ports, its addresses, its ways to say how far it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server import shared_memory
from server.cold import service_loading_ns, triton_loading_ns
from server.export import onnx_path
from server.fleet import Plan
from server.net import choose_ports, get, reachable
from server.repository import make_backends, make_repository, triton_command, triton_environment
from server.settings import Settings
from server.spec import CACHE, ModelSpec
from server.tracing import trace_file, trace_options
from server.wheel import Wheel

PYTORCH_PORT = 8002
# HTTP, gRPC, metrics.
TRITON_PORTS = {"onnx": (8010, 8011, 8012), "openvino": (8020, 8021, 8022), "emulated": (8030, 8031, 8032)}
TRITON_MODELS = {
    "onnx": "openclip_vit_b32",
    "openvino": "openclip_vit_b32_openvino",
    "emulated": "emulated",
}


@dataclass(frozen=True)
class Hosting:
    """What the servers of one `up` share: their address, and how Triton queues, runs and traces requests."""

    host: str
    queue_delay_us: int
    instances: int = 1
    trace_dir: Path | None = None


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
        lambda: _answers(address, "/healthz"),
        lambda: _answers(address, "/readyz"),
        lambda _: service_loading_ns(address),
    )


def model_parameters(spec: ModelSpec, weights_sha256: str) -> dict[str, str]:
    """What the copies of the real models' configurations are given."""
    return {
        "onnx_path": str(onnx_path(spec)),
        "cache_dir": str(CACHE / "openvino"),
        "model": spec.name,
        "weights": spec.weights,
        "weights_sha256": weights_sha256,
    }


def triton_plan(engine: str, parameters: Mapping[str, str], wheel: Wheel, hosting: Hosting) -> Plan:
    """A tritonserver with the model of `onnx`, `openvino` or `emulated`, given its parameters, and `null`."""
    ports = choose_ports(hosting.host, list(TRITON_PORTS[engine]))
    http, grpc, metrics = (f"{reachable(hosting.host)}:{port}" for port in ports)
    model = TRITON_MODELS[engine]
    repository = make_repository(engine, hosting.queue_delay_us, hosting.instances, parameters)
    prefix = shared_memory.prefix_for(engine)
    command = triton_command(wheel, repository, make_backends(wheel), hosting.host, ports, prefix)
    endpoint = {"http": http, "grpc": grpc, "metrics": f"http://{metrics}/metrics", "model": model}
    if "emulated" in parameters:
        endpoint["emulated"] = parameters["emulated"]
    if hosting.trace_dir:
        trace = trace_file(hosting.trace_dir, engine)
        command += trace_options(trace)
        endpoint["trace"] = str(trace)
    return Plan(
        engine,
        command,
        triton_environment(wheel, os.environ),
        endpoint,
        lambda: _answers(http, "/v2/health/live"),
        lambda: _answers(http, "/v2/health/ready") and _answers(http, f"/v2/models/{model}/ready"),
        lambda log: triton_loading_ns(log, model),
        prefix,
    )


def _answers(address: str, path: str) -> bool:
    reply = get(address, path)
    return reply is not None and reply[0] == 200
