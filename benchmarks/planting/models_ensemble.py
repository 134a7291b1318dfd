"""The real tritonserver with an ensemble of ours whose first step, the decoder, is slow, or becomes so."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.planting.setup import Behind
from benchmarks.strange_servers.running import POLL_S, READY_S, answers, running
from server.embedded import leftovers
from server.embedded.events import Events
from server.embedded.options import profile_of
from server.embedded.up import start_lock
from server.net import choose_ports, reachable
from server.spec import FP32
from server.triton.repository import make_repository
from server.triton.tritonserver import (
    VARIABLE,
    find_wheel,
    make_backends,
    secret,
    triton_command,
    triton_environment,
)

TRITON = Path(__file__).with_name("triton")
SLOW, HEATING = TRITON / "decode_jpeg" / "1" / "model.py", TRITON / "heating" / "1" / "model.py"
"""In the place of triton_repo's decoder: one instance, as there, and 20 ms an image; from 20 s on 80 ms."""
ENSEMBLE = "emulated_jpeg"


@contextmanager
def ensemble(model: str, decoder: Path, behind: Behind) -> Iterator[int]:
    """The HTTP port of a tritonserver with a decoder, and a model as `--emulate` understands `model`."""
    wheel, prefix = find_wheel(), leftovers.prefix_for("planted")
    backends = make_backends(wheel)
    with ExitStack() as lock, ExitStack() as left:
        lock.enter_context(start_lock(Events(as_json=False), partial(time.sleep, POLL_S), READY_S))
        environments = left.enter_context(leftovers.Environments())
        left.callback(leftovers.remove_shared_memory, prefix)
        repository = lay_out(behind.folder / "models", model, decoder)
        ports = choose_ports(behind.host, [0, 0, 0])
        command = triton_command(wheel, repository, backends, behind.host, ports, prefix, model_control=False)
        environ = {**triton_environment(wheel, backends, os.environ), VARIABLE: secret(os.environ)}
        http = f"{reachable(behind.host)}:{ports[0]}"
        ready = partial(answers, http, f"/v2/models/{ENSEMBLE}/ready")
        with running("triton", command, environ, behind.folder, ready):
            environments.note()
            lock.close()
            yield ports[0]


def lay_out(folder: Path, model: str, decoder: Path) -> Path:
    """The repository that `up --emulate … --payloads fp32,jpeg` makes, with another decoder in it."""
    ours = make_repository("emulated", 0, 1, profile_of(model).parameters(), (FP32, "jpeg"))
    shutil.copytree(ours, folder)
    shutil.copy2(decoder, folder / "decode_jpeg" / "1")
    return folder
