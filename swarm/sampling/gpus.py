"""The GPUs of this machine through NVML, where there is one; and which servers are on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import gevent

from swarm.backends.statistics import gpu_records
from users.endpoint import Endpoint


def is_local(endpoint: Endpoint) -> bool:
    """The server is on this machine, as far as its address says: a loopback one."""
    try:
        return ipaddress.ip_address(endpoint.host).is_loopback
    except ValueError:
        return endpoint.host == "localhost"


def find_nvml() -> Any | None:
    """The module `pynvml`, where it is installed: hosts that only generate load do without."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def in_thread(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do it in gevent's thread pool: a driver's call may take its time, and would hold up every user."""
    answer: dict[str, Any] = gevent.get_hub().threadpool.apply(work)
    return answer


class LocalGpus:
    """NVML, initialised by the first reading; `nvml` is the module, and `run` where its calls are made."""

    def __init__(
        self, nvml: Any, run: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]] = in_thread
    ) -> None:
        self._nvml, self._run = nvml, run
        self._handles: dict[str, Any] | None = None

    def read(self) -> dict[str, Any]:
        """`{"gpus": […]}`, or nothing where there is no driver and no GPU."""
        return self._run(self._read)

    def _read(self) -> dict[str, Any]:
        if self._handles is None:
            self._handles = handles_of(self._nvml)
        found = gpu_records(
            (gpu, *told) for gpu, handle in self._handles.items() for told in values_of(self._nvml, handle)
        )
        return {"gpus": found} if found else {}

    def close(self) -> None:
        """Let NVML go, without waiting for it."""
        if self._handles:
            gevent.get_hub().threadpool.spawn(self._nvml.nvmlShutdown)
        self._handles = None


def handles_of(nvml: Any) -> dict[str, Any]:
    """NVML's handle of every GPU by its UUID, which Triton's metrics use too; none without a driver."""
    handles = {}
    with suppress(nvml.NVMLError):
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):  # a GPU that is lost leaves the others
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                handles[nvml.nvmlDeviceGetUUID(handle)] = handle
    return handles


def gpu_names(nvml: Any | None) -> list[str]:
    """The product name of every GPU of this machine; none without NVML, a driver, or a GPU."""
    names: list[str] = []
    if nvml is None:
        return names
    for handle in handles_of(nvml).values():
        with suppress(nvml.NVMLError):
            names.append(str(nvml.nvmlDeviceGetName(handle)))
    with suppress(nvml.NVMLError):
        nvml.nvmlShutdown()
    return names


def values_of(nvml: Any, handle: Any) -> Iterator[tuple[str, float]]:
    """(field, value) of all that this GPU tells."""
    questions: dict[str, Callable[[], float]] = {
        "util_pct": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "energy_j": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
    }
    for field, ask in questions.items():
        with suppress(nvml.NVMLError):
            yield field, ask()


def memory_by_process(nvml: Any) -> dict[int, int]:
    """Bytes that each process holds on all GPUs of this machine; none where the driver does not tell that.

    Processes are named as the driver sees them, which in a container can be by other numbers than ours.
    """
    held: dict[int, int] = {}
    for handle in handles_of(nvml).values():
        with suppress(nvml.NVMLError):
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                if process.usedGpuMemory is not None:
                    held[process.pid] = held.get(process.pid, 0) + process.usedGpuMemory
    with suppress(nvml.NVMLError):
        nvml.nvmlShutdown()
    return held
