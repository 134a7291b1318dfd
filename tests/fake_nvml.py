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

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        return fail() if handle == 1 else 12_500

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return fail() if handle == 1 else 250_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return fail() if handle == 1 else 400_000

    def nvmlDeviceGetClockInfo(self, handle: int, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return 1395

    def nvmlDeviceGetMaxClockInfo(self, handle: int, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return 1410

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return 40

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return POWER_CAP

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: int) -> int:
        return 3

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: int) -> int:
        return 4

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: int) -> int:
        return 16

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:
        return 16

    def nvmlDeviceGetPcieThroughput(self, handle: int, counter: int) -> int:
        """KB a second."""
        self.asked_of_pcie.append(handle)
        return 1_000_000 * (1 + counter)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        return fail() if handle == 0 else [1, 1]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self.processes[handle]]
