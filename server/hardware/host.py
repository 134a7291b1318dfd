"""What servers a host can run: containers, embedded ones on the CPU, embedded ones on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from server.hardware import device
from server.hardware.device import Facts

PACKAGES = (
    *("torch", "open_clip_torch", "onnx", "onnxruntime", "openvino", "numpy"),
    *("fastapi", "uvicorn"),
)
INSTALL = "run `pip install -r requirements.txt`"
COMPOSE = (2, 20)
"""The first that has all that server/compose.yaml is made of."""


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
    """Whether containers can be given a GPU."""


@dataclass(frozen=True)
class Host:
    """All that decides which servers this host can run."""

    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of those that are installed."""
    tritonserver: str = ""
    libpython: str = ""
    wheel_fault: str = ""
    """What tritonserver lacks here, and the mend."""
    gpu: Facts = field(default_factory=Facts)
    gpu_fault: str = ""
    """Why a GPU that is there could not be tried."""
    docker: Docker = field(default_factory=Docker)


@dataclass(frozen=True)
class Profile:
    """One way to run the servers: how, and what is missing for it, each with its mend."""

    name: str
    how: str
    lacks: tuple[str, ...]


def profiles(host: Host) -> tuple[Profile, ...]:
    """The three ways, the container first."""
    return (
        Profile("container", "see docs/production.md", container_lacks(host)),
        Profile("embedded CPU", "`python -m server up --device cpu`", cpu_lacks(host)),
        Profile("embedded CUDA", "`python -m server up --device cuda`", cuda_lacks(host)),
    )


def cpu_lacks(host: Host) -> tuple[str, ...]:
    """What is missing for the embedded servers on any device."""
    missing = [name for name in PACKAGES if name not in host.packages]
    found = [f"{', '.join(missing)} not installed: {INSTALL}"] if missing else []
    return (*found, *([host.wheel_fault] if host.wheel_fault else []))


def cuda_lacks(host: Host) -> tuple[str, ...]:
    """What is missing for the embedded servers on a GPU."""
    of_gpu = host.gpu_fault or device.lack(host.gpu) or device.fault(host.gpu)
    return (*cpu_lacks(host), *([str(of_gpu)] if of_gpu else []))


def container_lacks(host: Host) -> tuple[str, ...]:
    """What is missing for the servers of server/compose.yaml with a GPU."""
    docker = host.docker
    if not docker.client:
        return ("no docker command: install Docker Engine with its compose plugin",)
    found = []
    if not docker.engine:
        found.append(f"no Docker engine answers ({docker.error}): start it, or join the group `docker`")
    if _version(docker.compose) < COMPOSE:
        has = f"is {docker.compose}" if docker.compose else "is missing"
        wanted = ".".join(map(str, COMPOSE))
        found.append(f"docker compose {has}: install docker-compose-plugin {wanted} or later")
    if not host.gpu.gpus:
        found.append("NVML sees no NVIDIA GPU here: `--profile cpu` runs the PyTorch service alone")
    elif docker.engine and not docker.nvidia:
        found.append(
            "Docker cannot hand on the GPU: install nvidia-container-toolkit, run "
            "`nvidia-ctk runtime configure --runtime=docker` and restart Docker"
        )
    return tuple(found)


def _version(text: str) -> tuple[int, ...]:
    """`v2.39.1-desktop.1` as (2, 39); nothing that begins with two numbers is before all versions."""
    parts = text.removeprefix("v").split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
