"""The plan of each embedded server: its command, its ports, its addresses, its ways to say how far it is."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from server.cache import cache
from server.embedded import leftovers
from server.embedded.fleet import Plan, service_told, triton_told
from server.errors import SetUpError
from server.hardware.compiler import compiler_lack
from server.hardware.device import CPU, CPU_ALONE, CUDA, TENSORRT, TRT, Device
from server.hardware.probe import with_libraries
from server.models.export import onnx_path
from server.net import choose_ports, get, reachable
from server.settings import PREFIX, Settings
from server.spec import FP32, ROOT, ModelSpec
from server.triton.repository import TRITON_MODELS, make_repository, served
from server.triton.tritonserver import (
    VARIABLE,
    Wheel,
    make_backends,
    span_options,
    trace_file,
    trace_options,
    triton_command,
    triton_environment,
)

PYTORCH_PORT = 8002
ONNX, TORCH, INDUCTOR = "onnx", "torch", "inductor"
PYTORCH_ENGINES = (TORCH, INDUCTOR)
"""The tritonservers whose models compute like the service."""
GATEWAY = "gateway"
NAMED = (
    *("MODEL", "PRETRAINED", "SEED", "DEVICE", "PRECISION", "HOST", "PORT", "UPSTREAM", "UPSTREAM_MODEL"),
    *("TLS_CERT", "TLS_KEY", "MAX_DRAIN_S"),
)
"""Settings that an embedded service is given; the others come from the environment."""
DRAIN_S = 2
"""Less than the supervisor waits for what it stops (server/embedded/fleet.py)."""
GATEWAY_PORT = 8040
# HTTP, gRPC, metrics.
TRITON_PORTS = {
    "onnx": (8010, 8011, 8012),
    # The compiled engine's place, of which there is one: OpenVINO on the CPU, TensorRT on a GPU.
    "openvino": (8020, 8021, 8022),
    "trt": (8020, 8021, 8022),
    "emulated": (8030, 8031, 8032),
    TORCH: (8050, 8051, 8052),
    INDUCTOR: (8060, 8061, 8062),
}


@dataclass(frozen=True)
class Hosting:
    """What the servers of one `up` share: their address, and what Triton does with requests."""

    host: str
    queue_delay_us: int
    instances: int = 1
    trace_dir: Path | None = None
    spans_url: str = ""
    payloads: tuple[str, ...] = (FP32,)
    device: Device = CPU_ALONE
    precision: str = FP32
    """The type that PyTorch's models compute in."""
    model_control: bool = False
    secret: str = ""
    """What a client must send to change a tritonserver."""


def pytorch_plan(spec: ModelSpec, hosting: Hosting) -> Plan:
    """The PyTorch service."""
    settings = Settings(
        spec.name,
        spec.pretrained,
        spec.seed,
        torch_device(hosting.device),
        hosting.precision,
        hosting.host,
        PYTORCH_PORT,
    )
    return _service_plan("pytorch", settings, {})


def torch_device(device: Device) -> str:
    """What PyTorch computes on: of several GPUs the environment may name one, as cuda:1."""
    asked = os.environ.get("INFERSWARM_DEVICE", Settings.device)
    return asked if asked.startswith(device.torch) else device.torch


def gateway_plan(engine: str, upstream: str, hosting: Hosting) -> Plan:
    """The same service before the tritonserver of `engine`, whose gRPC is at `upstream`."""
    model = TRITON_MODELS[engine]
    settings = Settings(host=hosting.host, port=GATEWAY_PORT, upstream=upstream, upstream_model=model)
    return _service_plan(GATEWAY, settings, {"upstream": engine})


def _service_plan(name: str, settings: Settings, about: Mapping[str, str]) -> Plan:
    """The service, which takes from our environment what is not named here, its token too.

    Not TLS: its address is known as http, and on the loopback address nobody listens in. Nor the time for
    draining: when the servers are stopped, nobody waits for an answer.
    """
    (port,) = choose_ports(settings.host, [settings.port])
    own = replace(settings, port=port, max_drain_s=DRAIN_S).to_env()
    environ = {**os.environ, **{f"{PREFIX}{key}": own[f"{PREFIX}{key}"] for key in NAMED}}
    address = f"{reachable(settings.host)}:{port}"
    return Plan(
        name,
        [sys.executable, "-m", "server", "service"],
        environ,
        {"url": f"http://{address}", **about},
        lambda: _answers(address, "/healthz"),
        lambda: _answers(address, "/readyz"),
        lambda _: service_told(address),
    )


def model_parameters(spec: ModelSpec, weights_sha256: str) -> dict[str, str]:
    """What the copies of the real models' configurations are given."""
    return {
        "onnx_path": str(onnx_path(spec)),
        "cache_dir": str(cache("openvino")),
        "model": spec.name,
        "weights": spec.weights,
        "weights_sha256": weights_sha256,
    }


def torch_parameters(engine: str, spec: ModelSpec, hosting: Hosting) -> dict[str, str]:
    """What the copies of PyTorch's models are given; SetUpError where one is to be compiled and cannot be."""
    if engine == INDUCTOR and (missing := compiler_lack()):
        raise SetUpError(f"{missing}, or leave {INDUCTOR} out.")
    return {
        "sources": str(ROOT),
        "model": spec.name,
        "pretrained": spec.pretrained,
        "seed": str(spec.seed),
        "weights": spec.weights,
        "device": torch_device(hosting.device),
        "precision": hosting.precision,
        "threads": os.environ.get(f"{PREFIX}THREADS", "0"),
    }


def compiling() -> dict[str, str]:
    """The environment that torch.compile reads: where it keeps what it has made, and how it makes that."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(cache("inductor")),
        "TRITON_CACHE_DIR": str(cache("inductor/kernels")),
        # In the model's own process: for others it would start the Python that a stub is not.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def engine_parameters(engine: str, given: Mapping[str, str], device: Device) -> dict[str, str]:
    """The same, with what an engine is told of the device: ONNX Runtime's providers, TensorRT's cache."""
    if engine == TRT:
        kept = str(cache("tensorrt"))
        paths = {"trt_engine_cache_path": kept, "trt_timing_cache_path": kept}
        return {**given, "providers": f"{TENSORRT},{CUDA},{CPU}", **paths}
    if engine == ONNX and device.provider == CUDA:
        return {**given, "providers": f"{CUDA},{CPU}", "warm_up": "1,4,8,16,32"}
    return dict(given)


def triton_plan(engine: str, parameters: Mapping[str, str], wheel: Wheel, hosting: Hosting) -> Plan:
    """A tritonserver with the model of an engine, or the emulated one, given its parameters, and `null`."""
    ports = choose_ports(hosting.host, list(TRITON_PORTS[engine]))
    http, grpc, metrics = (f"{reachable(hosting.host)}:{port}" for port in ports)
    model = TRITON_MODELS[engine]
    repository = make_repository(
        engine, hosting.queue_delay_us, hosting.instances, parameters, hosting.payloads
    )
    prefix = leftovers.prefix_for(engine)
    backends = make_backends(wheel)
    command = triton_command(wheel, repository, backends, hosting.host, ports, prefix, hosting.model_control)
    endpoint: dict[str, Any] = {"http": http, "grpc": grpc, "metrics": f"http://{metrics}/metrics"}
    endpoint |= {"model": model, "payloads": list(hosting.payloads)}
    asked = [f"/v2/models/{name}/ready" for name in served(model, hosting.payloads)]
    if "emulated" in parameters:
        endpoint["emulated"] = parameters["emulated"]
    if engine in (ONNX, TRT):
        endpoint["provider"] = parameters.get("providers", CPU).split(",")[0]
    if hosting.trace_dir:
        trace = trace_file(hosting.trace_dir, engine)
        command += trace_options(trace)
        endpoint["trace"] = str(trace)
    elif hosting.spans_url:
        command += span_options(hosting.spans_url, engine)
    environ = with_libraries(os.environ, hosting.device.folders) | (compiling() if engine == INDUCTOR else {})
    return Plan(
        engine,
        command,
        {**triton_environment(wheel, backends, environ), VARIABLE: hosting.secret},
        endpoint,
        lambda: _answers(http, "/v2/health/live"),
        lambda: all(_answers(http, path) for path in ("/v2/health/ready", *asked)),
        lambda log: triton_told(log, model),
        prefix,
    )


def _answers(address: str, path: str) -> bool:
    reply = get(address, path)
    return reply is not None and reply[0] == 200
