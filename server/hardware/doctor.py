"""`inferswarm doctor`: which servers this machine can run, and what it lacks for the others."""

import argparse
import json
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.errors import SetUpError
from server.hardware import device, gpu_host
from server.hardware.device import TENSORRT, DeviceFacts
from server.hardware.gpu_host import line
from server.hardware.nvml import read_gpus
from server.hardware.packages import INSTALL, version_of
from server.hardware.probe import read_facts
from server.triton.tritonserver import find_wheel

GPU_PACKAGE, GPU_RUNTIME = "nvidia-ml-py", "onnxruntime-gpu"
DOCKER_TIMEOUT_S = 10.0
DOCKER = ["docker", "info", "--format", "{{json .}}"]
PACKAGES = (
    *("torch", "open_clip_torch", "onnx", "onnxruntime", "openvino", "numpy"),
    *("fastapi", "uvicorn"),
)
COMPOSE = (2, 20)
"""The first version that supports everything in server/compose.yaml."""


@dataclass(frozen=True)
class Docker:
    """What the docker command says; empty where it does not."""

    client: str = ""
    compose: str = ""
    engine: str = ""
    """The engine's version."""
    error: str = ""
    """Why no engine answered."""
    nvidia: bool = False
    """Whether containers can use a GPU."""


@dataclass(frozen=True)
class HostFinding:
    """All that decides which servers this host can run."""

    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed ones."""
    tritonserver: str = ""
    libpython: str = ""
    wheel_fault: str = ""
    """What tritonserver lacks here, and the fix."""
    gpu: DeviceFacts = field(default_factory=DeviceFacts)
    gpu_fault: str = ""
    """Why an existing GPU could not be tested."""
    docker: Docker = field(default_factory=Docker)


@dataclass(frozen=True)
class HostProfile:
    """One way to run the servers: how, and what is missing for it, each with its fix."""

    name: str
    how: str
    lacks: tuple[str, ...]


def profiles(host: HostFinding) -> tuple[HostProfile, ...]:
    """The three ways, the container first."""
    return (
        HostProfile("container", "see docs/production.md", tuple(container_lacks(host))),
        HostProfile("embedded CPU", "`inferswarm up --device cpu`", cpu_lacks(host)),
        HostProfile("embedded CUDA", "`inferswarm up --device cuda`", cuda_lacks(host)),
    )


def cpu_lacks(host: HostFinding) -> tuple[str, ...]:
    """What is missing for the embedded servers on any device."""
    missing = [name for name in PACKAGES if name not in host.packages]
    found = [f"{', '.join(missing)} not installed: {INSTALL}"] if missing else []
    return (*found, *([host.wheel_fault] if host.wheel_fault else []))


def cuda_lacks(host: HostFinding) -> tuple[str, ...]:
    """What is missing for the embedded servers on a GPU."""
    of_gpu = host.gpu_fault or device.lack(host.gpu) or device.fault(host.gpu)
    return (*cpu_lacks(host), *([str(of_gpu)] if of_gpu else []))


def container_lacks(host: HostFinding) -> Iterator[str]:
    """What is missing for the servers of server/compose.yaml with a GPU."""
    docker = host.docker
    if not docker.client:
        yield "no docker command: install Docker Engine with its compose plugin"
        return
    if not docker.engine:
        yield f"no Docker engine answers ({docker.error}): start it, or join the group `docker`"
    if _numbers_of(docker.compose) < COMPOSE:
        has = f"is {docker.compose}" if docker.compose else "is missing"
        wanted = ".".join(map(str, COMPOSE))
        yield f"docker compose {has}: install docker-compose-plugin {wanted} or later"
    if not host.gpu.gpus:
        yield "NVML sees no NVIDIA GPU here: `--profile cpu` runs the PyTorch service alone"
    elif docker.engine and not docker.nvidia:
        yield (
            "Docker cannot pass on the GPU: install nvidia-container-toolkit, run "
            "`nvidia-ctk runtime configure --runtime=docker` and restart Docker"
        )


def _numbers_of(text: str) -> tuple[int, ...]:
    """`v2.39.1-desktop.1` as (2, 39); nothing that begins with two numbers is before all versions."""
    parts = text.removeprefix("v").split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def main(argv: list[str]) -> int:
    """Print what was found and what can be run, one line each; 2 where the servers cannot run on the CPU."""
    parser = argparse.ArgumentParser(prog="inferswarm doctor", description=__doc__)
    parser.add_argument(
        "--gpu", action="store_true", help="what a GPU host with only PyTorch can run of a GPU pack"
    )
    parser.add_argument("--json", action="store_true", help="with --gpu: print JSON, for programs")
    options = parser.parse_args(argv)
    if options.json and not options.gpu:
        parser.error("--json needs --gpu: give that, too")
    if options.gpu:
        return gpu_host.main(options.json)
    host = look()
    print("\n".join([*findings(host), "", *verdicts(host)]))
    return 2 if cpu_lacks(host) else 0


def look() -> HostFinding:
    """What this machine has."""
    server = libpython = wheel_fault = gpu_fault = ""
    try:
        wheel = find_wheel()
        server, libpython = str(wheel.server), str(wheel.libpython)
    except SetUpError as error:
        wheel_fault = str(error)
    try:
        gpu = read_facts()
    except SetUpError as error:
        gpu, gpu_fault = DeviceFacts(tuple(gpu.name for gpu in read_gpus())), str(error)
    return HostFinding(installed(), server, libpython, wheel_fault, gpu, gpu_fault, ask_docker())


def installed() -> dict[str, str]:
    """The versions of the packages that are there; ONNX Runtime's is that of either of its packages."""
    found = {name: version_of(name) for name in (*PACKAGES, GPU_PACKAGE)}
    if gpu_runtime := version_of(GPU_RUNTIME):
        found["onnxruntime"] = f"{gpu_runtime} ({GPU_RUNTIME})"
    return {name: text for name, text in found.items() if text}


def ask_docker(command: list[str] = DOCKER, timeout_s: float = DOCKER_TIMEOUT_S) -> Docker:
    """What the docker command says of itself and of its engine."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except OSError:
        return Docker()
    except subprocess.TimeoutExpired:
        return Docker("?", error=f"no answer within {timeout_s:.0f} s")
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {}
    return docker_of(said, " ".join(done.stderr.split()))


def docker_of(said: Mapping[str, Any], error: str) -> Docker:
    """`docker info` as JSON, and what it said besides."""
    client = said.get("ClientInfo") or {}
    plugins = {plugin.get("Name"): plugin.get("Version", "") for plugin in client.get("Plugins") or []}
    devices = said.get("DiscoveredDevices") or []
    by_id = any("nvidia.com/gpu" in str(device.get("ID")) for device in devices)
    engine = said.get("ServerVersion") or ""
    why = error or "; ".join(said.get("ServerErrors") or []) or "no output"
    return Docker(
        client=client.get("Version") or "?",
        compose=plugins.get("compose", ""),
        engine=engine,
        error="" if engine else why,
        nvidia="nvidia" in (said.get("Runtimes") or {}) or by_id,
    )


def findings(host: HostFinding) -> Iterator[str]:
    """A line for each thing that was looked for."""
    yield line("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in PACKAGES:
        yield line(name, host.packages.get(name) or f"missing: {INSTALL}")
    yield line("tritonserver", host.tritonserver or "cannot run here: see below")
    if host.libpython:
        yield line("libpython", host.libpython)
    unseen = f"missing: {INSTALL}; until then no GPU is seen"
    yield line(GPU_PACKAGE, host.packages.get(GPU_PACKAGE) or unseen)
    yield line("GPU", ", ".join(host.gpu.gpus) or "none")
    if host.gpu.gpus:
        runs = "can be used" if host.gpu.runs(TENSORRT) else host.gpu.failed.get(TENSORRT, "not found")
        yield line("TensorRT", runs)
    docker = host.docker
    engine = f"engine {docker.engine}" if docker.engine else f"no engine ({docker.error})"
    yield line("docker", f"{docker.client}, {engine}" if docker.client else "none")


def verdicts(host: HostFinding) -> Iterator[str]:
    """Which profiles this host can run; for the others a line for each lack."""
    yield "This host can run"
    for profile in profiles(host):
        first, *others = profile.lacks or (profile.how,)
        yield f"  {profile.name:14} {'no ' if profile.lacks else 'yes'}  {first}"
        yield from (f"{'':22}{lack}" for lack in others)
