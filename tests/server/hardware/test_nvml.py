"""What NVML tells of the GPUs, from a stand-in for it, and where it is shown."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from server.hardware.nvml import Gpu, read_gpus
from server.service.metrics import Metrics


class NVMLError(Exception):
    pass


def nvml(monkeypatch, **replaced):
    """Two GPUs, the second of which does not tell its power; `replaced` functions are told otherwise."""

    def power(handle):
        if handle == 1:
            raise NVMLError("not supported")
        return 250_500

    fake = ModuleType("pynvml")
    functions = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: f"GPU {handle}",
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=55),
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=10, total=80),
        "nvmlDeviceGetPowerUsage": power,
        "nvmlDeviceGetClockInfo": lambda handle, clock: 1980,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 40,
    }
    constants = {"NVMLError": NVMLError, "NVML_CLOCK_SM": 1, "NVML_TEMPERATURE_GPU": 0}
    vars(fake).update({**functions, **constants, **replaced})
    monkeypatch.setitem(sys.modules, "pynvml", fake)


def fail(*_):
    raise NVMLError("GPU is lost")


def test_gpus_are_read_and_what_one_does_not_tell_is_none(monkeypatch):
    nvml(monkeypatch)
    assert read_gpus() == [
        Gpu(0, "GPU 0", 55, 10, 80, 250.5, 1980, 40),
        Gpu(1, "GPU 1", 55, 10, 80, None, 1980, 40),
    ]


def test_a_lost_gpu_leaves_the_others(monkeypatch):
    nvml(monkeypatch, nvmlDeviceGetHandleByIndex=lambda index: fail() if index == 0 else index)
    assert [gpu.name for gpu in read_gpus()] == ["GPU 1"]


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_there_is_no_gpu(function, monkeypatch):
    nvml(monkeypatch, **{function: fail})
    assert read_gpus() == []


def test_without_pynvml_there_is_no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_gpus() == []


def test_gpu_gauges_leave_out_what_a_gpu_does_not_tell():
    gpu = Gpu(0, "GPU", 55.0, 10.0, 80.0, None, 1980.0, 40.0)
    text = Metrics(gpus=lambda: [gpu]).render().decode()
    lines = [line for line in text.splitlines() if line.startswith("inferswarm_gpu_")]
    assert lines == [
        'inferswarm_gpu_utilisation_pct{gpu="0"} 55.0',
        'inferswarm_gpu_memory_used_bytes{gpu="0"} 10.0',
        'inferswarm_gpu_sm_clock_mhz{gpu="0"} 1980.0',
        'inferswarm_gpu_temperature_c{gpu="0"} 40.0',
    ]


def test_gpu_info_lists_gpus(client):
    status, _, body = client.request("GET", "/gpu-info")
    assert status == 200
    assert isinstance(json.loads(body)["gpus"], list)
