"""LitServe, BentoML, mosec, MLServer and Ray Serve: how their users start them, each with the same model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.strange_servers.environments import FOLDER, python_of
from benchmarks.strange_servers.running import HOST, answers, running, work_folder
from server.net import choose_ports

PROGRAMS = FOLDER / "programs"
PORTS = 3

Arguments = Callable[[list[int], Path], list[str]]
"""What Python is called with, by free ports and a folder for what the server writes."""


@dataclass(frozen=True)
class StrangeServer:
    """A third-party server. `ready`: the path that says with 200 that it takes requests.

    `requirements`: the name of its file, without `.txt`. `grpc`: whether its second port speaks gRPC.
    """

    requirements: str
    arguments: Arguments
    ready: str
    grpc: bool = False


@dataclass(frozen=True)
class Addresses:
    """`host:port` for HTTP, and for gRPC where the server has that."""

    http: str
    grpc: str = ""


def litserve(ports: list[int], folder: Path) -> list[str]:
    """A program."""
    return [str(PROGRAMS / "litserve_server.py"), str(ports[0])]


def bentoml(ports: list[int], folder: Path) -> list[str]:
    """A command that is given a service."""
    where = ["--working-dir", str(PROGRAMS), "--host", HOST, "--port", str(ports[0])]
    return ["-m", "bentoml", "serve", "bentoml_service:ClipService", *where]


def mosec(ports: list[int], folder: Path) -> list[str]:
    """A program."""
    return [str(PROGRAMS / "mosec_server.py"), "--address", HOST, "--port", str(ports[0])]


def mlserver(ports: list[int], folder: Path) -> list[str]:
    """A command that is given a folder of models, written here."""
    named = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    model = {
        "name": "clip",
        "platform": "onnxruntime",
        "implementation": "mlserver_runtime.ClipRuntime",
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 224, 224]}],
        "outputs": [{"name": "embedding", "datatype": "FP32", "shape": [-1, 512]}],
    }
    (folder / "models" / "clip").mkdir(parents=True)
    (folder / "models" / "settings.json").write_text(json.dumps({"host": HOST, **named}))
    (folder / "models" / "clip" / "model-settings.json").write_text(json.dumps(model))
    return ["-c", "from mlserver.cli import main; main()", "start", str(folder / "models")]


def ray_serve(ports: list[int], folder: Path) -> list[str]:
    """A program."""
    return [str(PROGRAMS / "ray_serve_app.py"), str(ports[0]), str(folder / "ray")]


SERVERS = {
    "litserve": StrangeServer("litserve", litserve, "/health"),
    "bentoml": StrangeServer("bentoml", bentoml, "/readyz"),
    # It listens once its workers are there.
    "mosec": StrangeServer("mosec", mosec, "/"),
    "mlserver": StrangeServer("mlserver", mlserver, "/v2/models/clip/ready", grpc=True),
    "ray-serve": StrangeServer("ray_serve", ray_serve, "/-/healthz"),
}


@contextmanager
def served(name: str, onnx: Path) -> Iterator[Addresses]:
    """One of SERVERS with the exported model at `onnx`, once it is ready. Raises SetUpError."""
    server = SERVERS[name]
    python = python_of(server.requirements)
    with work_folder() as folder:
        ports = choose_ports(HOST, [0] * PORTS)
        command = [str(python), *server.arguments(ports, folder)]
        http = f"{HOST}:{ports[0]}"
        with running(name, command, environment(onnx, folder), folder, lambda: answers(http, server.ready)):
            yield Addresses(http, f"{HOST}:{ports[1]}" if server.grpc else "")


def environment(onnx: Path, folder: Path) -> dict[str, str]:
    """What these servers are told: where the model is; a home of their own; to report to nobody."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "CLIP_ONNX": str(onnx),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(PROGRAMS),
        # Not what lies where they are started from, which has a package `server`.
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "BENTOML_DO_NOT_TRACK": "true",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Its own ports listen at all addresses, whatever it is told: who comes there must have its token.
        "RAY_AUTH_MODE": "token",
    }
