"""The GPUs of this machine through NVML; no GPU or no driver is an empty list, never an error."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Gpu:
    """One GPU at one moment."""

    index: int
    name: str
    utilisation_pct: int
    memory_used_bytes: int
    memory_total_bytes: int
    power_w: float
    sm_clock_mhz: int
    temperature_c: int

    def as_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


def read_gpus() -> list[Gpu]:
    """Every GPU that NVML can read now."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_read(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _read(nvml: object, index: int) -> Gpu:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(
        index=index,
        name=pynvml.nvmlDeviceGetName(handle),
        utilisation_pct=pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        memory_used_bytes=memory.used,
        memory_total_bytes=memory.total,
        power_w=pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        sm_clock_mhz=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        temperature_c=pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    )
