"""Stands in for the module pynvml: one GPU that tells what nvml.csv says, a row a second from the first on.

On PYTHONPATH it is found before the real one. The GPU's name says that it is a replay, in every report.
"""

import csv
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def saying(value: Any) -> Callable[..., Any]:
    """A function that always says the same."""

    def function(*asked: object) -> Any:
        return value

    return function


def reading(column: str, units: int = 1) -> Callable[..., int]:
    """A function that says what a column has now, of whose unit it takes so many."""

    def function(handle: int, *asked: object) -> int:
        return round(units * now()[column])

    return function


nvmlInit = nvmlShutdown = saying(None)
nvmlDeviceGetCount = saying(1)
nvmlDeviceGetHandleByIndex = saying(0)
nvmlDeviceGetName, nvmlDeviceGetUUID = saying(NAME), saying(UUID)
nvmlSystemGetDriverVersion = saying("replayed")
# Milliwatts, and millijoules since the driver was loaded.
nvmlDeviceGetPowerUsage = reading("power_w", 1_000)
nvmlDeviceGetTotalEnergyConsumption = reading("energy_j", 1_000)
nvmlDeviceGetClockInfo = reading("sm_clock_mhz")
nvmlDeviceGetTemperature = saying(45)
nvmlDeviceGetComputeRunningProcesses = saying([])


def nvmlDeviceGetUtilizationRates(handle: int) -> SimpleNamespace:
    return SimpleNamespace(gpu=int(now()["util_pct"]))


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:
    return SimpleNamespace(used=int(now()["memory_bytes"]), total=81_559 * 2**20)
