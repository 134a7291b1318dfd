"""The GPUs of this machine through NVML; no GPU, driver or pynvml is an empty list, never an error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Gpu:
    """One GPU at one moment; None is what this GPU does not tell."""

    index: int
    name: str
    utilisation_pct: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    power_w: float | None
    sm_clock_mhz: float | None
    temperature_c: float | None


def read_gpus() -> list[Gpu]:
    """Every GPU that NVML can read now; one that has been lost is left out."""
    found = _asked(lambda nvml: [_read(nvml, index) for index in range(nvml.nvmlDeviceGetCount())])
    return [gpu for gpu in found or () if gpu is not None]


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

    def ask(question: Callable[[], float]) -> float | None:
        try:
            return question()
        except nvml.NVMLError:
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
    )
