"""The GPUs of this machine through NVML; no GPU, driver or pynvml is an empty list, never an error."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Gpu:
    """One GPU at one moment; None is what this GPU does not tell.

    `serves`: whether this process computes on it, None where the driver does not name this process on any.
    `throttle_reasons` are NVML's bits for what holds its clocks down.
    """

    index: int
    name: str
    utilisation_pct: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    power_w: float | None
    sm_clock_mhz: float | None
    temperature_c: float | None
    uuid: str = ""
    energy_j: float | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: float | None = None
    throttle_reasons: int | None = None
    serves: bool | None = None


def read_gpus() -> list[Gpu]:
    """Every GPU that NVML can read now; one that has been lost is left out."""
    found = _asked(lambda nvml: [_read(nvml, index) for index in range(nvml.nvmlDeviceGetCount())])
    gpus = [gpu for gpu in found or () if gpu is not None]
    # In a container the driver may name processes by the host's numbers: then this one is on none.
    return gpus if any(gpu.serves for gpu in gpus) else [replace(gpu, serves=None) for gpu in gpus]


def driver() -> str:
    """The version of NVIDIA's driver; empty without one."""
    return str(_asked(lambda nvml: nvml.nvmlSystemGetDriverVersion()) or "")


def _asked(question: Callable[[Any], T]) -> T | None:
    """What NVML answers; None where it does not, or is not there."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return question(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _read(nvml: Any, index: int) -> Gpu | None:
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        name = nvml.nvmlDeviceGetName(gpu)
    except nvml.NVMLError:
        return None

    def ask(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (nvml.NVMLError, AttributeError):  # no such answer, or an older library
            return None

    return Gpu(
        index=index,
        name=name,
        utilisation_pct=ask(lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu),
        memory_used_bytes=ask(lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).used),
        memory_total_bytes=ask(lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).total),
        power_w=ask(lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
        sm_clock_mhz=ask(lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
        temperature_c=ask(lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
        uuid=ask(lambda: str(nvml.nvmlDeviceGetUUID(gpu))) or "",
        energy_j=ask(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000),
        power_limit_w=ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000),
        max_sm_clock_mhz=ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM)),
        throttle_reasons=ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)),
        serves=ask(
            lambda: os.getpid() in {one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)}
        ),
    )
