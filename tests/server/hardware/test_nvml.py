"""What NVML tells of the GPUs, from a stand-in for it, and where it is shown."""

import json
import os
import sys

import pytest

from server.hardware.nvml import Gpu, read_gpus
from server.service.metrics import Metrics
from tests.fake_nvml import GIB, POWER_CAP, FakeNvml, fail


def nvml(monkeypatch, processes=((), ()), **replaced):
    """Two GPUs, the second of which does not tell its power; `replaced` functions are told otherwise."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(processes, **replaced))


def test_gpus_are_read_and_what_one_does_not_tell_is_none(monkeypatch):
    nvml(monkeypatch)
    rest = {"max_sm_clock_mhz": 1410, "throttle_reasons": POWER_CAP}
    name, total = "NVIDIA A100 number", 80 * GIB
    first = Gpu(0, f"{name} 0", 55, 1000, total, 250.5, 1395, 40, "GPU-0", 12.5, 400.0, **rest)
    assert read_gpus() == [first, Gpu(1, f"{name} 1", 56, 1001, total, None, 1395, 40, "GPU-1", **rest)]


def test_the_gpu_that_this_process_computes_on(monkeypatch):
    nvml(monkeypatch, processes=((), (1, os.getpid()), (2,)))
    assert [gpu.serves for gpu in read_gpus()] == [False, True, False]
    nvml(monkeypatch, processes=((), (1,)))
    assert [gpu.serves for gpu in read_gpus()] == [None, None]


def test_a_lost_gpu_leaves_the_others(monkeypatch):
    nvml(monkeypatch, nvmlDeviceGetHandleByIndex=lambda index: fail() if index == 0 else index)
    assert [gpu.name for gpu in read_gpus()] == ["NVIDIA A100 number 1"]


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_there_is_no_gpu(function, monkeypatch):
    nvml(monkeypatch, **{function: fail})
    assert read_gpus() == []
    # Nor without pynvml.
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_gpus() == []


def test_gpu_gauges_leave_out_what_a_gpu_does_not_tell():
    gpu = Gpu(0, "GPU", 55.0, 10.0, 80.0, None, 1980.0, 40.0, "GPU-a", energy_j=7.5, serves=True)
    text = Metrics(gpus=lambda: [gpu]).render().decode()
    lines = [line for line in text.splitlines() if line.startswith("inferswarm_gpu_")]
    assert lines == [
        'inferswarm_gpu_utilisation_pct{gpu="0",uuid="GPU-a"} 55.0',
        'inferswarm_gpu_memory_used_bytes{gpu="0",uuid="GPU-a"} 10.0',
        'inferswarm_gpu_memory_total_bytes{gpu="0",uuid="GPU-a"} 80.0',
        'inferswarm_gpu_energy_j{gpu="0",uuid="GPU-a"} 7.5',
        'inferswarm_gpu_sm_clock_mhz{gpu="0",uuid="GPU-a"} 1980.0',
        'inferswarm_gpu_temperature_c{gpu="0",uuid="GPU-a"} 40.0',
        'inferswarm_gpu_serves{gpu="0",uuid="GPU-a"} 1.0',
    ]


def test_gpu_info_lists_gpus(client):
    status, _, body = client.request("GET", "/gpu-info")
    assert status == 200
    assert isinstance(json.loads(body)["gpus"], list)
