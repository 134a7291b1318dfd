"""Stands in for the module pynvml: one GPU that tells what nvml.csv says, a row a second from the first on.

On PYTHONPATH it is found before the real one. The GPU's name says that it is a replay, in every report.
"""

import csv
import time
from pathlib import Path
from types import SimpleNamespace

NAME, UUID = "replayed H100 (no measurement)", "GPU-replayed"
NVML_CLOCK_SM = NVML_TEMPERATURE_GPU = 0
ROWS = [
    {name: float(text) for name, text in row.items()}
    for row in csv.DictReader(Path(__file__).with_name("nvml.csv").read_text().splitlines())
]
began_s: list[int] = []


class NVMLError(Exception):
    """As pynvml's."""


def now() -> dict[str, float]:
    """The row of this second of the clock, by which studies sample; from the last on it stays."""
    second = int(time.time())
    began_s.extend([second][len(began_s) :])
    return ROWS[min(second - began_s[0], len(ROWS) - 1)]


def nvmlInit() -> None:
    pass


def nvmlShutdown() -> None:
    pass


def nvmlDeviceGetCount() -> int:
    return 1


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetName(handle: int) -> str:
    return NAME


def nvmlDeviceGetUUID(handle: int) -> str:
    return UUID


def nvmlSystemGetDriverVersion() -> str:
    return "replayed"


def nvmlDeviceGetUtilizationRates(handle: int) -> SimpleNamespace:
    return SimpleNamespace(gpu=int(now()["util_pct"]))


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:
    return SimpleNamespace(used=int(now()["memory_bytes"]), total=81_559 * 2**20)


def nvmlDeviceGetPowerUsage(handle: int) -> int:
    """Milliwatts."""
    return round(1e3 * now()["power_w"])


def nvmlDeviceGetTotalEnergyConsumption(handle: int) -> int:
    """Millijoules since the driver was loaded."""
    return round(1e3 * now()["energy_j"])


def nvmlDeviceGetClockInfo(handle: int, clock: int) -> int:
    return int(now()["sm_clock_mhz"])


def nvmlDeviceGetTemperature(handle: int, sensor: int) -> int:
    return 45


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[SimpleNamespace]:
    return []
