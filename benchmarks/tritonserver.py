"""The wheel's tritonserver with a benchmark's own model repository, on free ports, ended with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.strange_servers.running import POLL_S, READY_S, answers, running
from server.embedded import leftovers
from server.embedded.events import Events
from server.embedded.up import start_lock
from server.net import choose_ports, reachable
from server.triton.tritonserver import (
    VARIABLE,
    find_wheel,
    make_backends,
    secret,
    triton_command,
    triton_environment,
)


@dataclass(frozen=True)
class TritonAddresses:
    """`host:port` each; `metrics` is a page's whole address."""

    http: str
    grpc: str
    metrics: str


@contextmanager
def tritonserver(
    folder: Path,
    repository: Callable[[], Path],
    host: str = "127.0.0.1",
    ready: str = "/v2/health/ready",
    options: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
) -> Iterator[TritonAddresses]:
    """Its addresses once `ready` answers; `folder` is for its log. Raises SetUpError."""
    wheel, prefix = find_wheel(), leftovers.prefix_for("benchmark")
    backends = make_backends(wheel)
    with ExitStack() as lock, ExitStack() as left:
        lock.enter_context(start_lock(Events(as_json=False), partial(time.sleep, POLL_S), READY_S))
        environments = left.enter_context(leftovers.Environments())
        left.callback(leftovers.remove_shared_memory, prefix)
        ports = choose_ports(host, [0, 0, 0])
        command = triton_command(wheel, repository(), backends, host, ports, prefix, model_control=False)
        own = {**triton_environment(wheel, backends, environ), VARIABLE: secret(os.environ)}
        http, grpc, metrics = (f"{reachable(host)}:{port}" for port in ports)
        with running("triton", [*command, *options], own, folder, partial(answers, http, ready)):
            environments.note()
            lock.close()
            yield TritonAddresses(http, grpc, f"http://{metrics}/metrics")
