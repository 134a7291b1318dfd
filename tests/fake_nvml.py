"""Stands in for the module pynvml where a test says what its GPUs tell: two, unless it says otherwise."""

from types import SimpleNamespace
from typing import Any

GIB = 2**30
POWER_CAP = 0x4


class NVMLError(Exception):
    """As pynvml's."""


def fail(*_: object) -> Any:
    """What a GPU says that is lost, or that does not know."""
    raise NVMLError("GPU is lost")


def telling(value: Any, *, of: int | None = None, not_of: int | None = None) -> Any:
    """A function that says the same of every GPU but one, where it is asked for what it knows."""

    def function(self: Any, handle: int, *asked: int) -> Any:
        assert asked == (() if of is None else (of,))
        return fail() if handle == not_of else value

    return function


class FakeNvml:
    """Two GPUs, the second of which does not tell its power; `replaced` functions answer otherwise.

    `processes` are the numbers of those on each GPU.
    """

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1

    def __init__(self, processes: tuple[tuple[int, ...], ...] = ((), ()), **replaced: Any) -> None:
        self.started = self.stopped = 0
        self.asked_of_pcie: list[int] = []
        self.processes = processes
        vars(self).update(replaced)

    def nvmlInit(self) -> None:
        self.started += 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlShutdown(self) -> None:
        self.stopped += 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.processes)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA A100 number {handle}"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=55 + handle)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=1000 + handle, total=80 * GIB)

    nvmlDeviceGetTotalEnergyConsumption = telling(12_500, not_of=1)
    nvmlDeviceGetPowerUsage = telling(250_500, not_of=1)
    nvmlDeviceGetEnforcedPowerLimit = telling(400_000, not_of=1)
    nvmlDeviceGetClockInfo = telling(1395, of=NVML_CLOCK_SM)
    nvmlDeviceGetMaxClockInfo = telling(1410, of=NVML_CLOCK_SM)
    nvmlDeviceGetTemperature = telling(40, of=NVML_TEMPERATURE_GPU)
    nvmlDeviceGetCurrentClocksThrottleReasons = telling(POWER_CAP)
    nvmlDeviceGetCurrPcieLinkGeneration = telling(3)
    nvmlDeviceGetMaxPcieLinkGeneration = telling(4)
    nvmlDeviceGetCurrPcieLinkWidth = telling(16)
    nvmlDeviceGetMaxPcieLinkWidth = telling(16)
    nvmlDeviceGetMigMode = telling([1, 1], not_of=0)

    def nvmlDeviceGetPcieThroughput(self, handle: int, counter: int) -> int:
        """KB a second."""
        self.asked_of_pcie.append(handle)
        return 1_000_000 * (1 + counter)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self.processes[handle]]
