"""What was taken from a server that was started here, as sums since the first reading."""

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from swarm.sampling.machine import ServerCpuTime
from swarm.taken_cpu import TakenCpu


def watched(*growth: dict[str, float | int], shared: bool = False) -> ServerCpuTime:
    """One whose readings grow by these figures."""
    steps: Iterator[dict[str, float | int]] = iter([dict(one) for one in growth])
    holder = SimpleNamespace(holds=lambda pid: shared)
    taken: Any = SimpleNamespace(take=lambda: next(steps), throttling=holder)
    return ServerCpuTime(7, lambda pid: cast(TakenCpu, taken))


def test_growth_is_added_up() -> None:
    second: dict[str, float | int] = {"wanted_ns": 500, "stolen_ns": 40, "pressure_ns": 9}
    cpu = watched({**second, "cpu_quota": 0.5, "throttled_ns": 100}, second, shared=True)
    first = {"wanted_ns": 500, "stolen_ns": 40, "throttled_ns": 100, "quota": 0.5, "shared": True}
    assert cpu.read() == {"server_cpu": first}
    # Its processes have ended: the quota that it had, and what it took so far, are still known.
    assert cpu.read() == {"server_cpu": {**first, "wanted_ns": 1_000, "stolen_ns": 80}}


def test_a_system_that_tells_nothing() -> None:
    assert watched({}).read() == {}


def test_a_real_process() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = ServerCpuTime(process.pid).read()["server_cpu"]
        process.communicate(b"\n")
    assert found["wanted_ns"] >= 0
    assert found["stolen_ns"] >= 0
