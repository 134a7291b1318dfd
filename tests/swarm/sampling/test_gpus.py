"""What NVML tells of local GPUs, from a stand-in for it; and which servers are local."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.monkey import get_original

from swarm.sampling.machine import LocalGpus, find_nvml, gpu_names
from users.endpoint import Endpoint, is_loopback
from users.metrics import gpu_records

REPLAYED = Path(__file__).parents[2] / "replayed/pynvml.py"


class NVMLError(Exception):
    pass


def fail(*_: object) -> Any:
    raise NVMLError("GPU is lost")


class FakeNvml:
    """Two GPUs, the second of which does not tell its power."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self, **replaced: Callable[..., Any]) -> None:
        self.started = self.stopped = 0
        vars(self).update(replaced)

    def nvmlInit(self) -> None:
        self.started += 1

    def nvmlShutdown(self) -> None:
        self.stopped += 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=55 + handle)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=1000 + handle)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        return fail() if handle == 1 else 12_500

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return fail() if handle == 1 else 250_500

    def nvmlDeviceGetClockInfo(self, handle: int, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return 1980

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA A100 number {handle}"


def read(nvml: FakeNvml) -> dict[str, Any]:
    return LocalGpus(nvml).read()


def test_every_gpu_by_its_uuid_without_what_it_does_not_tell() -> None:
    first = {
        "id": "GPU-0", "util_pct": 55.0, "memory_bytes": 1000, "power_w": 250.5, "energy_j": 12.5,
        "sm_clock_mhz": 1980.0,
    }  # fmt: skip
    second = {"id": "GPU-1", "util_pct": 56.0, "memory_bytes": 1001, "sm_clock_mhz": 1980.0}
    assert read(FakeNvml()) == {"gpus": [first, second]}


def test_a_lost_gpu_leaves_the_others() -> None:
    found = read(FakeNvml(nvmlDeviceGetHandleByIndex=lambda index: fail() if index == 0 else index))
    assert [gpu["id"] for gpu in found["gpus"]] == ["GPU-1"]


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_nothing_is_told(call: str) -> None:
    assert read(FakeNvml(**{call: fail})) == {}


def test_gpus_are_named_and_a_lost_or_missing_one_is_not() -> None:
    nvml = FakeNvml(nvmlDeviceGetHandleByIndex=lambda index: fail() if index == 0 else index)
    assert gpu_names(nvml) == ["NVIDIA A100 number 1"]
    assert (nvml.started, nvml.stopped) == (1, 1)
    assert gpu_names(FakeNvml(nvmlInit=fail, nvmlShutdown=fail)) == []
    assert gpu_names(None) == []


def test_one_start_for_all_readings_and_an_end() -> None:
    nvml = FakeNvml()
    gpus = LocalGpus(nvml)
    assert [len(gpus.read()["gpus"]) for _ in range(3)] == [2, 2, 2]
    assert nvml.started == 1
    gpus.close()
    gevent.get_hub().threadpool.join()
    assert nvml.stopped == 1


def test_a_slow_driver_does_not_hold_up_the_event_loop() -> None:
    nvml = FakeNvml(nvmlInit=lambda: get_original("time", "sleep")(0.3))
    reading = gevent.spawn(LocalGpus(nvml).read)
    gevent.sleep(0.05)
    assert not reading.ready()
    assert len(reading.get(timeout=5)["gpus"]) == 2


def test_a_replay_tells_a_row_each_second_and_then_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third row to the fifth the counter gains 1,000,927.53 - 1,000,397.15 J: 265.19 W."""
    now = [1000.9]
    monkeypatch.setattr("time.time", lambda: now[0])
    gpus = LocalGpus(SimpleNamespace(**runpy.run_path(str(REPLAYED))))
    found = []
    for at_s in (1000.9, 1002.0, 1004.5, 1089.0, 2000.0):
        now[0] = at_s
        found += gpus.read()["gpus"]
    idle = {"util_pct": 0.0, "memory_bytes": 1_914_699_776, "power_w": 69.65, "sm_clock_mhz": 345.0}
    last = {"util_pct": 66.0, "memory_bytes": 3_103_784_960, "power_w": 253.44, "sm_clock_mhz": 1980.0}
    assert found[0] == {"id": "GPU-replayed", "energy_j": 1_000_069.65, **idle}
    assert [gpu["energy_j"] for gpu in found[1:3]] == [1_000_397.15, 1_000_927.53]
    assert found[3:] == [{"id": "GPU-replayed", "energy_j": 1_023_178.55, **last}] * 2


def test_the_real_module_answers_with_or_without_a_driver() -> None:
    nvml = find_nvml()
    if nvml is not None:
        assert set(LocalGpus(nvml).read()) <= {"gpus"}


def test_values_that_are_no_numbers_are_left_out() -> None:
    told = [("a", "util_pct", math.nan), ("a", "power_w", 70.12345), ("b", "memory_bytes", math.inf)]
    assert gpu_records(told) == [{"id": "a", "power_w": 70.123}]


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:8002", True),
        ("[::1]:8002", True),
        ("localhost:8002", True),
        ("10.0.0.7:8002", False),
        ("gpu-host:8002", False),
    ],
)
def test_local_is_what_has_a_loopback_address(address: str, local: bool) -> None:
    assert is_loopback(Endpoint("pytorch-http", "pytorch", "http", "jpeg", address).host) is local
