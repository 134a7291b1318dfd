"""What NVML tells of local GPUs, from a stand-in for it; and which servers are local."""

import math
import os
import runpy
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.monkey import get_original

from swarm.sampling.gpus import LocalGpus, driver_version, find_nvml, gpu_names, is_below
from tests.fake_nvml import GIB, POWER_CAP, FakeNvml, fail
from users.endpoint import Endpoint, is_loopback
from users.metrics import gpu_records

REPLAYED = Path(__file__).parents[2] / "replayed/pynvml.py"


def read(nvml: FakeNvml) -> dict[str, Any]:
    return LocalGpus(nvml).read()


def test_every_gpu_by_its_uuid_without_what_it_does_not_tell() -> None:
    both = {
        "sm_clock_mhz": 1395.0, "max_sm_clock_mhz": 1410.0, "throttle_reasons": POWER_CAP,
        "memory_total_bytes": 80 * GIB,
        "pcie_gen": 3, "max_pcie_gen": 4, "pcie_width": 16, "max_pcie_width": 16,
    }  # fmt: skip
    first = {
        "id": "GPU-0", "util_pct": 55.0, "memory_bytes": 1000, "power_w": 250.5, "energy_j": 12.5,
        "power_limit_w": 400.0,
    }  # fmt: skip
    second = {"id": "GPU-1", "util_pct": 56.0, "memory_bytes": 1001, "mig": True}
    pcie = {"pcie_tx_bytes_per_s": 1.024e9, "pcie_rx_bytes_per_s": 2.048e9}
    assert read(FakeNvml()) == {"gpus": [first | both, second | both | pcie]}


def test_pcie_is_asked_of_one_gpu_in_turns_and_of_the_servers_alone_once_they_are_known() -> None:
    nvml = FakeNvml()
    gpus = LocalGpus(nvml)
    for _ in range(4):
        gpus.read()
    assert nvml.asked_of_pcie == [1, 1, 0, 0, 1, 1, 0, 0]
    known = FakeNvml(((7,), ()))
    gpus = LocalGpus(known, pid=7, below=among)
    for _ in range(2):
        gpus.read()
    assert known.asked_of_pcie == [0, 0, 0, 0]


def among(pid: int, tops: Iterable[int]) -> bool | None:
    """Processes below 100 are seen from here; those of the tens of a top are below it."""
    return pid // 10 in {top // 10 for top in tops} if pid < 100 else None


def owners(nvml: FakeNvml, **stated: Any) -> list[tuple[Any, Any]]:
    found = LocalGpus(nvml, below=among, **stated).read()["gpus"]
    return [(gpu.get("serves"), gpu.get("other_processes")) for gpu in found]


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        # One of eight is the server's; a server of ours is no stranger, another process is.
        (((), (11, 12), *[()] * 6), [(False, 0), (True, 0), *[(False, 0)] * 6]),
        (((12, 21, 55), (56, 57)), [(True, 1), (False, 2)]),
        # The driver's numbers are of another namespace; and one of them is not seen from here.
        (((1_234,), ()), [(None, None)] * 2),
        (((12, 1_234), ()), [(True, 0), (False, 0)]),
        (((), ()), [(None, None)] * 2),
    ],
)
def test_which_gpus_hold_the_server_and_who_else_is_on_them(processes: Any, found: list[Any]) -> None:
    assert owners(FakeNvml(processes), pid=10, own=[10, 20]) == found


def test_a_gpu_that_once_held_the_server_keeps_it_though_a_reading_fails() -> None:
    nvml = FakeNvml(((12,), ()))
    gpus = LocalGpus(nvml, pid=10, below=among)
    gpus.read()
    vars(nvml).update(nvmlDeviceGetComputeRunningProcesses=fail)
    assert [gpu["serves"] for gpu in gpus.read()["gpus"]] == [True, False]


def test_processes_below_others() -> None:
    own, above = os.getpid(), os.getppid()
    assert [is_below(own, tops) for tops in ([own], [above], [2**22 + 1], [])] == [True, True, False, False]
    assert is_below(2**22 + 1, [own]) is None


def test_without_a_driver_nothing_is_told() -> None:
    assert read(FakeNvml(nvmlInit=fail)) == read(FakeNvml(nvmlDeviceGetCount=fail)) == {}


def test_gpus_are_named_and_a_lost_or_missing_one_is_not() -> None:
    nvml = FakeNvml(nvmlDeviceGetHandleByIndex=lambda index: fail() if index == 0 else index)
    assert gpu_names(nvml) == ["NVIDIA A100 number 1"]
    assert (nvml.started, nvml.stopped) == (1, 1)
    assert gpu_names(FakeNvml(nvmlInit=fail, nvmlShutdown=fail)) == []
    assert gpu_names(None) == []
    assert driver_version(FakeNvml()) == "580.95.05"
    assert driver_version(None) == driver_version(FakeNvml(nvmlInit=fail, nvmlShutdown=fail)) == ""


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
    total = {"memory_total_bytes": 81_559 * 2**20}
    idle = {"util_pct": 0.0, "memory_bytes": 1_914_699_776, "power_w": 69.65, "sm_clock_mhz": 345.0}
    last = {"util_pct": 66.0, "memory_bytes": 3_103_784_960, "power_w": 253.44, "sm_clock_mhz": 1980.0}
    assert found[0] == {"id": "GPU-replayed", "energy_j": 1_000_069.65, **idle, **total}
    assert [gpu["energy_j"] for gpu in found[1:3]] == [1_000_397.15, 1_000_927.53]
    assert found[3:] == [{"id": "GPU-replayed", "energy_j": 1_023_178.55, **last, **total}] * 2


def test_the_real_module_answers_with_or_without_a_driver() -> None:
    nvml = find_nvml()
    if nvml is None:
        pytest.skip("pynvml is not installed")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        assert LocalGpus(nvml).read() == {}
    else:
        found, count = LocalGpus(nvml).read(), nvml.nvmlDeviceGetCount()
        nvml.nvmlShutdown()
        assert len(found["gpus"]) == count


def test_values_that_are_no_numbers_are_left_out() -> None:
    told = [("a", "util_pct", math.nan), ("a", "power_w", 70.12345), ("b", "memory_bytes", math.inf)]
    assert gpu_records(told) == [{"id": "a", "power_w": 70.123}]


def test_local_is_what_has_a_loopback_address() -> None:
    hosts = [Endpoint("a", "pytorch", "http", "jpeg", f"{host}:80").host for host in ("[::1]", "localhost")]
    assert all(is_loopback(host) for host in (*hosts, "127.0.0.1"))
    assert not is_loopback("10.0.0.7")
    assert not is_loopback("gpu-host")
