"""The real tritonserver with models that are not ours: other names, types, layouts, forms of a picture."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.strange_servers.environments import FOLDER
from benchmarks.strange_servers.running import HOST, POLL_S, READY_S, answers, running, work_folder
from benchmarks.strange_servers.servers import PROGRAMS
from server.embedded import leftovers
from server.embedded.events import Events
from server.embedded.up import start_lock
from server.net import choose_ports
from server.spec import FP32
from server.triton.repository import TENSORS, make_repository
from server.triton.tritonserver import (
    VARIABLE,
    find_wheel,
    make_backends,
    secret,
    triton_command,
    triton_environment,
)

OWN = FOLDER / "triton"
MODELS = ("siglip_fp16", "clip_jpeg", "clip_padded", "clip_unbatched")
BESIDE = (TENSORS, PROGRAMS / "clip_onnx.py")
"""What every model of its own imports."""
STEPS = ("jpeg",)
"""The payload of ours whose steps `clip_jpeg` goes through, too."""


@dataclass(frozen=True)
class TritonAddresses:
    """`host:port` each; `metrics` is a page's whole address."""

    http: str
    grpc: str
    metrics: str


@contextmanager
def triton(onnx: Path) -> Iterator[TritonAddresses]:
    """A tritonserver with MODELS, once it is ready. Raises SetUpError."""
    wheel, prefix = find_wheel(), leftovers.prefix_for("strangers")
    backends = make_backends(wheel)
    with ExitStack() as lock, work_folder() as folder, ExitStack() as left:
        lock.enter_context(start_lock(Events(as_json=False), partial(time.sleep, POLL_S), READY_S))
        environments = left.enter_context(leftovers.Environments())
        left.callback(leftovers.remove_shared_memory, prefix)
        repository = lay_out(folder / "models", onnx)
        ports = choose_ports(HOST, [0, 0, 0])
        http, grpc, metrics = (f"{HOST}:{port}" for port in ports)
        command = triton_command(wheel, repository, backends, HOST, ports, prefix, model_control=False)
        environ = triton_environment(wheel, backends, {**os.environ, "CLIP_ONNX": str(onnx)})
        environ[VARIABLE] = secret(os.environ)
        with running("triton", command, environ, folder, lambda: answers(http, "/v2/health/ready")):
            environments.note()
            lock.close()
            yield TritonAddresses(http, grpc, f"http://{metrics}/metrics")


def lay_out(folder: Path, onnx: Path) -> Path:
    """A model repository: ours of the exported model with its JPEG decoder, and MODELS besides."""
    ours = make_repository("onnx", 0, 1, {"onnx_path": str(onnx)}, (FP32, *STEPS))
    shutil.copytree(ours, folder)
    for name in MODELS:
        shutil.copytree(OWN / name, folder / name)
        (folder / name / "1").mkdir(exist_ok=True)
        if (folder / name / "1" / "model.py").exists():
            for path in BESIDE:
                shutil.copy2(path, folder / name / "1")
    return folder
